//! The layers of a worker's confinement, their states, and the level they amount to.
//! Pure: the nursery fills [`Layers`] in, the supervisor judges the same value.

coded_enum! {
    /// How much confinement there is; see [`Layers::level`]. Ordered: more is greater.
    Level ("level") {
        /// System-call filter, no new privileges, limits, one descriptor.
        Minimal = 0,
        /// `Minimal`, and Landlock or namespaces.
        Strong = 1,
        /// Every layer.
        Full = 2,
    }
}

impl Level {
    /// The name used in configuration, answers and logs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Minimal => "minimal",
            Self::Strong => "strong",
            Self::Full => "full",
        }
    }
}

coded_enum! {
    /// One layer of a worker's confinement, in the order in which they are set up.
    Layer ("layer") {
        /// User namespace.
        UserNamespace = 0,
        /// Mount namespace.
        MountNamespace = 1,
        /// Network namespace: no interface but a loopback that is down.
        NetNamespace = 2,
        /// System V and POSIX queues namespace.
        IpcNamespace = 3,
        /// Host name namespace.
        UtsNamespace = 4,
        /// Process-id namespace: a worker sees no process of the host.
        PidNamespace = 5,
        /// Control group namespace.
        CgroupNamespace = 6,
        /// The root directory is an empty read-only file system.
        EmptyRoot = 7,
        /// Each worker slot has a user id of its own.
        OwnUid = 8,
        /// No capability in any set that counts.
        NoCapabilities = 9,
        /// The kernel kills the process when its parent ends.
        ParentDeath = 10,
        /// Only descriptor 3 is open.
        Descriptors = 11,
        /// Other processes of the same user can not look inside; no core dump.
        NotDumpable = 12,
        /// Memory is never writable and executable (Linux 6.3).
        Mdwe = 13,
        /// `no_new_privs`.
        NoNewPrivs = 14,
        /// Landlock: no file, no TCP, no signal or abstract socket out of the domain.
        Landlock = 15,
        /// The CPU timer that kills at the budget.
        CpuTimer = 16,
        /// Resource limits.
        Rlimits = 17,
        /// The system-call filter.
        Seccomp = 18,
    }
}

/// Number of layers.
pub const LAYERS: usize = 19;

impl Layer {
    /// The name used in answers, logs and `doctor`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::UserNamespace => "user_namespace",
            Self::MountNamespace => "mount_namespace",
            Self::NetNamespace => "net_namespace",
            Self::IpcNamespace => "ipc_namespace",
            Self::UtsNamespace => "uts_namespace",
            Self::PidNamespace => "pid_namespace",
            Self::CgroupNamespace => "cgroup_namespace",
            Self::EmptyRoot => "empty_root",
            Self::OwnUid => "own_uid",
            Self::NoCapabilities => "no_capabilities",
            Self::ParentDeath => "parent_death",
            Self::Descriptors => "descriptors",
            Self::NotDumpable => "not_dumpable",
            Self::Mdwe => "mdwe",
            Self::NoNewPrivs => "no_new_privs",
            Self::Landlock => "landlock",
            Self::CpuTimer => "cpu_timer",
            Self::Rlimits => "rlimits",
            Self::Seccomp => "seccomp",
        }
    }

    /// Without these there is no level at all: they exist on every kernel that brig runs on
    /// and need no privilege.
    #[must_use]
    pub fn is_required(self) -> bool {
        matches!(
            self,
            Self::NoCapabilities
                | Self::ParentDeath
                | Self::Descriptors
                | Self::NotDumpable
                | Self::NoNewPrivs
                | Self::CpuTimer
                | Self::Rlimits
                | Self::Seccomp
        )
    }

    /// The namespaces and what is built from them. They come together or not at all.
    #[must_use]
    pub fn is_namespace(self) -> bool {
        self <= Self::EmptyRoot
    }
}

coded_enum! {
    /// Why a layer is not there.
    Cause ("cause") {
        /// The configuration said not to.
        SwitchedOff = 0,
        /// This kernel does not have it.
        Unsupported = 1,
        /// The kernel, a security module or a filter above us said no; see the errno.
        Refused = 2,
        /// It needs to be started as root, or needs a range of user ids.
        NeedsRoot = 3,
        /// `/proc` is not mounted.
        NoProc = 4,
        /// It was not tried yet.
        NotTried = 5,
    }
}

/// One layer's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerState {
    /// Set up and, where the kernel can be asked, read back.
    Active,
    /// Not there.
    Missing {
        /// Why.
        cause: Cause,
        /// The kernel's error number, 0 when there was none.
        errno: u16,
    },
}

/// The state of every layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layers([LayerState; LAYERS]);

impl Default for Layers {
    fn default() -> Self {
        Self::none()
    }
}

impl Layers {
    /// Nothing is set up yet.
    #[must_use]
    pub fn none() -> Self {
        Self([LayerState::Missing { cause: Cause::NotTried, errno: 0 }; LAYERS])
    }

    /// One layer's state.
    #[must_use]
    pub fn get(&self, layer: Layer) -> LayerState {
        self.iter()
            .find(|(candidate, _)| *candidate == layer)
            .map_or(LayerState::Missing { cause: Cause::NotTried, errno: 0 }, |(_, state)| state)
    }

    /// Records one layer's state.
    pub fn set(&mut self, layer: Layer, state: LayerState) {
        if let Some(place) = self.0.get_mut(layer as usize) {
            *place = state;
        }
    }

    /// Records that a layer is set up.
    pub fn activate(&mut self, layer: Layer) {
        self.set(layer, LayerState::Active);
    }

    /// Whether a layer is set up.
    #[must_use]
    pub fn has(&self, layer: Layer) -> bool {
        self.get(layer) == LayerState::Active
    }

    /// All layers with their states, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Layer, LayerState)> + '_ {
        Layer::ALL.iter().copied().zip(self.0.iter().copied())
    }

    /// The level that these layers amount to; `Err` names the first required layer that is
    /// missing, and then nothing may run.
    ///
    /// User ids per slot do not count towards `full`: the filter, Landlock's scopes and the
    /// dumpable bit already keep workers of one user apart, and no ordinary user could ever
    /// have them. They are reported all the same.
    ///
    /// # Errors
    /// The missing required layer.
    pub fn level(&self) -> Result<Level, Layer> {
        if let Some((layer, _)) = self.iter().find(|(layer, state)| layer.is_required() && *state != LayerState::Active) {
            return Err(layer);
        }
        // Root can have the others where user namespaces are refused; its workers have no
        // capabilities either way.
        let but_user =
            self.iter().all(|(layer, state)| !layer.is_namespace() || layer == Layer::UserNamespace || state == LayerState::Active);
        let landlock = self.has(Layer::Landlock);
        let every = but_user && landlock && self.has(Layer::Mdwe);
        Ok(if every && self.has(Layer::UserNamespace) {
            Level::Full
        } else if but_user || landlock {
            Level::Strong
        } else {
            Level::Minimal
        })
    }

    /// The first layer that stands between these layers and `wanted`, if any does: the one
    /// to name when a start is refused.
    #[must_use]
    pub fn missing_for(&self, wanted: Level) -> Option<Layer> {
        match self.level() {
            Err(layer) => Some(layer),
            Ok(level) if level >= wanted => None,
            Ok(_) if wanted == Level::Full => {
                self.iter().find(|(layer, state)| *layer != Layer::OwnUid && *state != LayerState::Active).map(|(layer, _)| layer)
            }
            Ok(_) => Some(Layer::Landlock),
        }
    }
}
