//! What is learnt of a machine: which loader its firmware can start, and how it is sent on to its own disk.
//!
//! A ladder is a list of ways, tried from its beginning. A way that did not work gets points against it; with
//! [`ENOUGH`] it has failed, and the next one is tried. A way that worked is kept for good: nothing but a person who
//! forgets it makes a machine try another, so it never goes back and forth. Where every way has failed the first one
//! stays, and learning is over. It answers nobody, and keeps nothing itself.

use std::{collections::BTreeMap, fmt, time::Duration};

use model::{ClientArch, Sighted, UnixMillis, boot::LocalBoot, sighting::DhcpKind};

use crate::loops::is_companion;

/// Points that make a way a failed one. A single boot that somebody cut short must not.
pub const ENOUGH: u8 = 2;
/// A firmware that asks again so soon after it fetched a loader refused to start it: nobody restarts a machine so fast.
const REFUSED: Duration = Duration::from_secs(20);
/// How long a loader may take to be heard of, and how long a machine that was sent to its disk must stay away.
pub const PATIENCE: Duration = Duration::from_secs(3 * 60);

/// What is known of a way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// So many points against it, fewer than [`ENOUGH`].
    Doubted(u8),
    /// It does not work.
    Failed,
    /// It works.
    Works,
}

/// What is known of a machine, or of all machines of a model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BootMethod {
    /// Of loaders, by name under the TFTP root.
    pub loaders: BTreeMap<String, Standing>,
    /// Of ways to the local disk.
    pub local: BTreeMap<LocalBoot, Standing>,
}

/// What there is to be learnt about a machine now.
#[derive(Debug, Clone, Copy)]
pub struct School<'a> {
    /// Loaders by architecture, the first to be tried first.
    pub ladders: &'a BTreeMap<ClientArch, Vec<String>>,
    /// Whether its firmware is UEFI.
    pub efi: bool,
    /// Whether its loader is left to be learnt: none is configured.
    pub loaders: bool,
    /// Whether its way to the local disk is.
    pub local: bool,
}

/// What is open of a machine: begun, and not known how it will end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Open {
    /// A loader that went out whole and was not heard of since.
    loader: Option<(String, UnixMillis)>,
    /// It was sent to its own disk in this way.
    local: Option<(LocalBoot, UnixMillis)>,
}

/// What was learnt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lesson {
    /// A loader works.
    LoaderWorks(String),
    /// A loader does not, and the next one, if there is one, is to be tried.
    LoaderFailed {
        /// The loader.
        loader: String,
        /// The next one; `None`: all have failed, and the first one stays.
        next: Option<String>,
    },
    /// A way to the local disk works.
    LocalWorks(LocalBoot),
    /// A way to the local disk leads back to network boot.
    LocalFailed {
        /// The way.
        way: LocalBoot,
        /// The next one; `None`: all have failed, and the first one stays.
        next: Option<LocalBoot>,
    },
}

/// Ways to the local disk, in order. On UEFI `exit` is what the first one does anyway, and there is no `sanboot`.
#[must_use]
pub fn local_ways(efi: bool) -> &'static [LocalBoot] {
    if efi {
        &[LocalBoot::ByFirmware, LocalBoot::NotFound]
    } else {
        &[LocalBoot::ByFirmware, LocalBoot::Exit, LocalBoot::NotFound]
    }
}

/// The way to be taken: the first that works, else the first that has not failed, else the first.
fn choose<T: Ord>(ways: &[T], known: &BTreeMap<T, Standing>) -> Option<usize> {
    let is = |wanted: fn(&Standing) -> bool| {
        ways.iter().position(|way| known.get(way).is_some_and(wanted))
    };
    let works = is(|standing| *standing == Standing::Works);
    let untried = || ways.iter().position(|way| known.get(way) != Some(&Standing::Failed));
    works.or_else(untried).or((!ways.is_empty()).then_some(0))
}

impl BootMethod {
    /// What is known of a machine, with what its model's others taught where it has taught nothing itself.
    #[must_use]
    pub fn with_model(&self, model: &Self) -> Self {
        let mut both = model.clone();
        both.loaders.extend(self.loaders.clone());
        both.local.extend(&self.local);
        both
    }

    /// Loaders that stand for the first ones of the ladders.
    #[must_use]
    pub fn chosen_loaders(
        &self,
        ladders: &BTreeMap<ClientArch, Vec<String>>,
    ) -> BTreeMap<ClientArch, String> {
        let chosen = |(arch, ladder): (&ClientArch, &Vec<String>)| {
            let rung = choose(ladder, &self.loaders).filter(|rung| *rung > 0)?;
            Some((*arch, ladder.get(rung)?.clone()))
        };
        ladders.iter().filter_map(chosen).collect()
    }

    /// The way to the local disk.
    #[must_use]
    pub fn chosen_local(&self, efi: bool) -> LocalBoot {
        let ways = local_ways(efi);
        choose(ways, &self.local).and_then(|way| ways.get(way)).copied().unwrap_or_default()
    }

    /// Whether something was learnt that a new machine would not do by itself.
    #[must_use]
    pub fn is_peculiar(&self) -> bool {
        self.loaders.values().any(|standing| *standing == Standing::Failed)
            || self.local.values().any(|standing| *standing == Standing::Failed)
    }

    /// Takes in what was seen of a machine at `at`, in the order it was seen.
    pub fn saw(
        &mut self,
        open: &mut Open,
        school: &School<'_>,
        what: &Sighted,
        at: UnixMillis,
    ) -> Vec<Lesson> {
        let mut lessons = self.passed(open, school, at);
        match read(what) {
            Some(Sign::Fetched(name)) if ladder_of(school, name).is_some() => {
                open.loader = Some((name.to_owned(), at));
            }
            Some(Sign::Alive) => lessons.extend(self.loader_lives(open)),
            Some(Sign::SentLocal) => {
                lessons.extend(self.loader_lives(open));
                if school.local {
                    open.local = Some((self.chosen_local(school.efi), at));
                }
            }
            Some(Sign::SentElsewhere) => {
                lessons.extend(self.loader_lives(open));
                open.local = None;
            }
            Some(Sign::Firmware) => {
                if let Some((loader, since)) = open.loader.take() {
                    let points = if at.since(since) <= REFUSED { ENOUGH } else { 1 };
                    lessons.extend(self.loader_failed(school, loader, points));
                }
                if let Some((way, _)) = open.local.take() {
                    lessons.extend(self.local_failed(school, way));
                }
            }
            Some(Sign::System) => {
                if let Some((way, _)) = open.local.take() {
                    lessons.extend(self.local_works(way));
                }
            }
            Some(Sign::Fetched(_)) | None => (),
        }
        lessons
    }

    /// Time has passed: a loader that was not heard of has a point against it, and a machine that stayed away found its
    /// disk.
    pub fn passed(&mut self, open: &mut Open, school: &School<'_>, now: UnixMillis) -> Vec<Lesson> {
        let is_over = |since: UnixMillis| now.since(since) > PATIENCE;
        let mut lessons = Vec::new();
        if let Some((loader, _)) = open.loader.take_if(|(_, since)| is_over(*since)) {
            lessons.extend(self.loader_failed(school, loader, 1));
        }
        if let Some((way, _)) = open.local.take_if(|(_, since)| is_over(*since)) {
            lessons.extend(self.local_works(way));
        }
        lessons
    }

    fn loader_lives(&mut self, open: &mut Open) -> Option<Lesson> {
        let (loader, _) = open.loader.take()?;
        let before = self.loaders.insert(loader.clone(), Standing::Works);
        (before != Some(Standing::Works)).then_some(Lesson::LoaderWorks(loader))
    }

    fn local_works(&mut self, way: LocalBoot) -> Option<Lesson> {
        let before = self.local.insert(way, Standing::Works);
        (before != Some(Standing::Works)).then_some(Lesson::LocalWorks(way))
    }

    fn loader_failed(&mut self, school: &School<'_>, loader: String, points: u8) -> Option<Lesson> {
        let ladder = ladder_of(school, &loader)?;
        if !doubt(&mut self.loaders, loader.clone(), points) {
            return None;
        }
        let next = choose(ladder, &self.loaders).and_then(|rung| ladder.get(rung));
        let next = next.filter(|next| self.loaders.get(*next) != Some(&Standing::Failed)).cloned();
        Some(Lesson::LoaderFailed { loader, next })
    }

    fn local_failed(&mut self, school: &School<'_>, way: LocalBoot) -> Option<Lesson> {
        if !doubt(&mut self.local, way, 1) {
            return None;
        }
        let next = self.chosen_local(school.efi);
        let next = (self.local.get(&next) != Some(&Standing::Failed)).then_some(next);
        Some(Lesson::LocalFailed { way, next })
    }
}

impl Open {
    /// The machine's power was switched, by us or by somebody: what was open has no end that teaches anything.
    pub fn interrupt(&mut self) {
        *self = Self::default();
    }

    /// Whether nothing is open.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Points against a way. Gives whether it has failed by them; what works, or has failed before, stays as it is.
fn doubt<T: Ord>(known: &mut BTreeMap<T, Standing>, way: T, points: u8) -> bool {
    let had = match known.get(&way) {
        Some(Standing::Works | Standing::Failed) => return false,
        Some(Standing::Doubted(points)) => *points,
        None => 0,
    };
    let points = had.saturating_add(points);
    let failed = points >= ENOUGH;
    known.insert(way, if failed { Standing::Failed } else { Standing::Doubted(points) });
    failed
}

/// The ladder a loader stands in, where there is something to learn.
fn ladder_of<'a>(school: &School<'a>, name: &str) -> Option<&'a Vec<String>> {
    let mut ladders = school.ladders.values().filter(|_| school.loaders);
    ladders.find(|ladder| ladder.iter().any(|rung| rung == name))
}

/// What a sighting means here.
enum Sign<'a> {
    /// A file went out whole that may be a loader.
    Fetched(&'a str),
    /// A loader is running.
    Alive,
    /// A loader is running, and was sent to the local disk.
    SentLocal,
    /// A loader is running, and has something else to do.
    SentElsewhere,
    /// Firmware begins a network boot.
    Firmware,
    /// An operating system is running.
    System,
}

fn read(what: &Sighted) -> Option<Sign<'_>> {
    match what {
        Sighted::TftpDone { file, .. } if is_companion(file) => Some(Sign::Alive),
        Sighted::TftpDone { file, .. } => Some(Sign::Fetched(file.trim_start_matches('/'))),
        Sighted::HttpDone { method, path, status: 200, .. } if method == "GET" => {
            Some(Sign::Fetched(path.trim_start_matches('/')))
        }
        Sighted::TftpRead { file } if is_companion(file) => Some(Sign::Alive),
        Sighted::Script { what } if what.starts_with("local boot") => Some(Sign::SentLocal),
        Sighted::Script { .. } => Some(Sign::SentElsewhere),
        Sighted::DhcpIn { kind: DhcpKind::Discover, client, proxy: false, .. } => {
            Some(match client.as_str() {
                "" => Sign::System,
                "iPXE" | "cut-down iPXE" => Sign::Alive,
                _ => Sign::Firmware,
            })
        }
        Sighted::Agent { .. } => Some(Sign::SentElsewhere),
        Sighted::DhcpIn { .. }
        | Sighted::DhcpOut { .. }
        | Sighted::DhcpSilent { .. }
        | Sighted::Rival { .. }
        | Sighted::AddressTaken { .. }
        | Sighted::Looped { .. }
        | Sighted::Menu { .. }
        | Sighted::Learnt { .. }
        | Sighted::TftpRead { .. }
        | Sighted::TftpProbe { .. }
        | Sighted::TftpFailed { .. }
        | Sighted::HttpDone { .. }
        | Sighted::HttpShort { .. }
        | Sighted::KernelWhole { .. }
        | Sighted::Refused { .. } => None,
    }
}

/// What a way to the local disk is called: as `local_boot` in the configuration.
#[must_use]
pub fn local_name(way: LocalBoot) -> &'static str {
    match way {
        LocalBoot::ByFirmware => "auto",
        LocalBoot::Sanboot => "sanboot",
        LocalBoot::Exit => "exit",
        LocalBoot::NotFound => "not-found",
        LocalBoot::NoBootFile => "no-boot-file",
    }
}

/// The way of a name.
#[must_use]
pub fn local_way(name: &str) -> Option<LocalBoot> {
    let ways = [
        LocalBoot::ByFirmware,
        LocalBoot::Sanboot,
        LocalBoot::Exit,
        LocalBoot::NotFound,
        LocalBoot::NoBootFile,
    ];
    ways.into_iter().find(|way| local_name(*way) == name)
}

impl fmt::Display for Lesson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LoaderWorks(loader) => write!(f, "its firmware starts {loader}"),
            Self::LoaderFailed { loader, next: Some(next) } => {
                write!(f, "its firmware fetches {loader} and does not start it; {next} is next")
            }
            Self::LoaderFailed { loader, next: None } => write!(
                f,
                "its firmware fetches {loader} and does not start it, nor any other loader: \
                 look at its console, and at Secure Boot in its setup"
            ),
            Self::LocalWorks(way) => {
                write!(f, "it goes on to its disk with local_boot {:?}", local_name(*way))
            }
            Self::LocalFailed { way, next } => {
                let way = local_name(*way);
                write!(
                    f,
                    "sent to its disk with local_boot {way:?} it comes back to network boot"
                )?;
                match next {
                    Some(next) => write!(f, "; {:?} is next", local_name(*next)),
                    None => f.write_str(
                        ", as with all others: look whether its disk is in its boot order",
                    ),
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "ladder_tests.rs"]
mod tests;
