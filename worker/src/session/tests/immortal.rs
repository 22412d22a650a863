//! What the nursery made before the first fork is shared by all workers and neither counted
//! nor freed. A guest may do to it what it likes: nothing breaks, and what is the guest's
//! own comes back.

use super::*;
use crate::engine::alloc;

/// Enough garbage in cycles that it runs many times.
const PRESSURE: &str = "const press = ((f, p, s) => (n = 2e5) => { for (let i = 0; i < n; i++) { const o = { f, p, s }; o.self = o; o.g = () => o } })(Array.prototype.map, Object.prototype, Symbol.iterator);";

/// Takes every property from every built-in, those of the global object last, and puts
/// back what `instead` gives; says how many globals are left. Needs no built-in itself.
const STRIP: &str = "(instead) => { const { ownKeys, deleteProperty, defineProperty, getOwnPropertyDescriptor: slotOf } = Reflect; \
    const strip = (o, key) => { if (deleteProperty(o, key)) { const value = instead(o, key); \
      if (value) defineProperty(o, key, { value, configurable: true, writable: true }) } }; \
    const walk = (o, depth) => { const keys = ownKeys(o); for (let i = 0; i < keys.length; i++) { const slot = slotOf(o, keys[i]), value = slot && slot.value; \
      if (depth < 3 && value !== globalThis && (typeof value === 'function' || typeof value === 'object' && value)) walk(value, depth + 1); \
      if (depth > 0) strip(o, keys[i]) } }; \
    const world = globalThis; walk(world, 0); const keys = ownKeys(world); for (let i = 0; i < keys.length; i++) strip(world, keys[i]); return ownKeys(world).length }";

fn pressed(source: &str) -> Answer {
    run(&format!("{PRESSURE}\n{source}"))
}

/// Evaluates in one kept realm, one program after the other.
fn kept(worker: &mut Worker, source: &str) -> Answer {
    let mut program = Program::new(source);
    program.keep = true;
    worker.evaluate(&program)
}

#[test]
fn a_settled_realm_gives_nothing_of_itself_back() {
    let body = || {
        let realm = warm(&Ceilings::default()).unwrap();
        reseed(&realm, &[7; 64]);
        touch(&realm).unwrap();
        settle(&realm);
        let before = alloc::usage().used;
        let left: usize = realm.context.with(|ctx| ctx.eval(format!("({STRIP})(() => {{}})")).unwrap());
        realm.context.runtime().run_gc();
        let after = alloc::usage().used;
        assert!(left < 10, "{left} globals are left");
        // Arrays of properties shrink, and that is all; of a realm that is not settled 170 KiB come back.
        assert!(after + 48 * 1024 > before, "{} bytes of the realm were freed", before - after);
    };
    thread::Builder::new().stack_size(16 << 20).spawn(body).unwrap().join().unwrap();
}

#[test]
fn ten_million_references_to_a_built_in_leave_it_as_it_is() {
    let answer = pressed(
        "let f; for (let i = 0; i < 1e7; i++) f = Array.prototype.map; \
         for (let round = 0; round < 4; round++) { const many = new Array(1e6).fill(Array.prototype.map); many.length = 0; press(2e4) } \
         return [[1].map((x) => x + 1)[0], f === [].map, f.name]",
    );
    assert_eq!(answer.value(), r#"[2,true,"map"]"#);
}

#[test]
fn every_built_in_can_be_deleted_and_replaced() {
    let mut worker = Worker::start();
    let strip =
        format!("{PRESSURE} const strip = {STRIP}; let n = 0; strip((o, key) => n++ % 2 ? {{ back: o, key }} : undefined); press(3e5); n");
    let answer = kept(&mut worker, &strip);
    assert!(answer.value.as_deref().is_some_and(|n| n.parse::<u32>().unwrap() > 1000), "{answer:?}");
    for _ in 0..3 {
        assert_eq!(kept(&mut worker, "var o = { a: 1 }; o.self = o; o.a + 1").value(), "2");
    }
}

#[test]
fn cycles_through_built_ins_are_kept_while_they_are_reachable_and_no_longer() {
    let answer = Program::new(format!(
        "{PRESSURE} \
         for (let i = 0; i < 2e5; i++) {{ const o = {{ text: 'x'.repeat(100) }}; o.self = o; o.up = Array.prototype; Array.prototype['mine' + i % 10] = o }} \
         press(); \
         const kept = []; for (let i = 0; i < 10; i++) kept.push(Array.prototype['mine' + i].self.up === Array.prototype && Array.prototype['mine' + i].text.length); \
         for (let i = 0; i < 10; i++) delete Array.prototype['mine' + i]; \
         const proto = {{ greet() {{ return this === Math }} }}; proto.proto = proto; const former = Object.getPrototypeOf(Math); \
         Object.setPrototypeOf(Math, proto); press(); const greeted = Math.greet(); Object.setPrototypeOf(Math, former); press(); \
         return [kept, greeted, typeof Math.greet]"
    ))
    .limits(|limits| limits.heap_bytes = 8 << 20)
    .run();
    assert_eq!(answer.value(), r#"[[100,100,100,100,100,100,100,100,100,100],true,"undefined"]"#);
}

#[test]
fn weak_references_to_built_ins_never_end_and_those_to_the_guests_own_do() {
    let answer = pressed(
        "const ended = []; const registry = new FinalizationRegistry((what) => ended.push(what)); \
         const weak = new WeakRef(Array.prototype.map), map = new WeakMap([[Math, { of: Math }], [Symbol.iterator, 'symbol']]); \
         registry.register(Array.prototype.map, 'built-in'); registry.register(JSON, 'JSON'); \
         (() => { const mine = {}; mine.self = mine; registry.register(mine, 'mine'); map.set(mine, { mine }); globalThis.gone = new WeakRef(mine) })(); \
         await null; press(); await new Promise((done) => setTimeout(done, 1)); press(); \
         const same = weak.deref() === [].map && map.get(Math).of === Math && map.get(Symbol.iterator) === 'symbol'; \
         map.delete(Math); for (let i = 0; i < 1e5; i++) { new WeakRef(Math); new WeakMap([[Math, {}]]) } \
         press(); await null; \
         return [same, map.has(Math), gone.deref() === undefined, ended]",
    );
    assert_eq!(answer.value(), r#"[true,false,true,["mine"]]"#);
}

#[test]
fn what_is_added_to_one_built_in_is_on_no_other_object() {
    let answer = pressed(
        "[].map.extra = 1; Math.extra = 2; JSON.a = 1; delete JSON.a; Object.freeze(Reflect); \
         Object.defineProperty(Intl, 'late', { get: () => 7, configurable: true }); \
         for (let i = 0; i < 200; i++) Promise['p' + i] = { i }; press(); \
         let name = Array.name; for (let i = 0; i < 100; i++) name += Array.name; \
         const fresh = () => {}; \
         for (let i = 0; i < 200; i++) if (Promise['p' + i].i !== i || !delete Promise['p' + i]) throw i; press(); \
         return [[].map.extra, [].filter.extra, fresh.extra, Math.extra, Object.keys(JSON), Object.isFrozen(Reflect), Object.isFrozen(JSON), \
           Intl.late, Object.keys(Promise).length, Array.name, name.length, await Promise.resolve(3)]"
            .replace(", fresh.extra", ", fresh.extra === undefined")
            .replace("[].filter.extra", "[].filter.extra === undefined")
            .as_str(),
    );
    assert_eq!(answer.value(), r#"[1,true,true,2,[],true,false,7,0,"Array",505,3]"#);
}

#[test]
fn a_kept_realm_gets_back_what_its_programs_drop() {
    let mut worker = Worker::start();
    let source = "globalThis.last = Array.from({ length: 4000 }, (_, i) => ({ i, f: Math.max, key: 'k' + i, self: null })); \
                  for (const o of last) { o.self = o; o['p' + o.i % 50] = Symbol('s' + o.i) } Object.prototype.tail = last; delete Object.prototype.tail; last.length";
    for _ in 0..30 {
        let mut program = Program::new(source).limits(|limits| limits.heap_bytes = 16 << 20);
        program.keep = true;
        assert_eq!(worker.evaluate(&program).value(), "4000");
    }
}
