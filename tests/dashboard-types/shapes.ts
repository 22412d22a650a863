// What a dashboard may say, by the types that Grafana publishes. They describe an object in
// its own code, so two things are changed for a file: an enumeration is the text that it
// stands for, and what a panel leaves out of its options Grafana fills in.
import type { Dashboard, DataSourceRef, FieldConfig, Panel, RowPanel, VariableModel } from '@grafana/schema';
import type { Options as StatOptions } from '@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen';
import type {
  FieldConfig as TimeSeriesFields,
  Options as TimeSeriesOptions,
} from '@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';

/** As it stands in a file. */
type Written<T> = T extends string
  ? `${T}`
  : T extends readonly (infer Item)[]
    ? Written<Item>[]
    : T extends object
      ? { [Key in keyof T]: Written<T[Key]> }
      : T;

/** With anything left out. */
type Partly<T> = T extends readonly unknown[] ? T : T extends object ? { [Key in keyof T]?: Partly<T[Key]> } : T;

/** What the data source of Prometheus takes; its types are in a package with all of its code. */
interface Query {
  refId: string;
  datasource: DataSourceRef;
  expr: string;
  legendFormat?: string;
  range?: boolean;
  instant?: boolean;
  interval?: string;
  format?: 'time_series' | 'table' | 'heatmap';
  editorMode?: 'code' | 'builder';
}

interface Kind<Type extends string, Options, Fields> extends Omit<Panel, 'type' | 'options' | 'fieldConfig' | 'targets'> {
  type: Type;
  title: string;
  options: Partly<Options>;
  fieldConfig: {
    defaults: Omit<FieldConfig, 'custom'> & { custom?: Partly<Fields> };
    overrides: { matcher: { id: string; options?: string }; properties: { id: string; value?: string | number | boolean }[] }[];
  };
  targets: Query[];
}

/** A `Record` takes any name: here only the kinds of panels that the file has. */
type AnyPanel = Kind<'stat', StatOptions, never> | Kind<'timeseries', TimeSeriesOptions, TimeSeriesFields> | (RowPanel & { panels: [] });

type Variable = Omit<VariableModel, 'query'> & {
  query?: string | { query: string; refId: string };
  /** Of the editor; Grafana's types do not have it. */
  definition?: string;
};

interface Whole extends Omit<Dashboard, 'panels' | 'templating'> {
  title: string;
  uid: string;
  panels: AnyPanel[];
  templating: { list: Variable[] };
}

/** The file. */
export type File = Written<Whole>;
