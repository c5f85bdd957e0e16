//! The commands of an iPXE script, as far as volund's scripts use them.

use super::Settings;

/// What a script has gathered so far; shared by a script and those it chains to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    /// Settings: `mac`, `ip`, `uuid`, `next-server` and whatever scripts set.
    pub settings: Settings,
    images: Vec<Image>,
    /// Labels of the menu that is being made.
    items: Vec<String>,
    /// URL of the image `boot` starts.
    selected: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Image {
    name: String,
    url: String,
    args: String,
}

/// What the machine has to do for the script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// A line on the console.
    Print(String),
    /// Fetch `url` whole. Needs an outcome.
    Fetch {
        /// As written in the script: may be relative to the script's own URL.
        url: String,
    },
    /// Fetch `url` and run it as a script. Needs an outcome: that of the script, unless `replace`.
    Chain {
        /// As written in the script.
        url: String,
        /// The calling script is given up.
        replace: bool,
    },
    /// Start what was fetched. Never comes back.
    Boot(Handover),
    /// Start a disk. Needs an outcome when it cannot: then the script goes on.
    Sanboot {
        /// BIOS drive number, 128 is the first disk.
        drive: u8,
    },
    /// Wait.
    Sleep {
        /// Seconds.
        seconds: u32,
    },
    /// Reset the machine.
    Reboot,
    /// Switch the machine off.
    PowerOff,
    /// Wait for a person for ever: a shell, or a prompt without a time limit.
    Hang,
    /// The script is over; firmware goes on.
    End(Result<(), String>),
}

/// A kernel to start, and what comes with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handover {
    /// URL of the kernel, as written in the script.
    pub kernel: String,
    /// Kernel command line.
    pub args: String,
    /// URLs of the initrds, in order.
    pub initrds: Vec<String>,
}

/// More entries than any menu of ours has.
const MOST_ITEMS: usize = 64;

/// How a command went.
#[derive(Debug)]
pub(super) enum Step {
    Ok,
    Failed(String),
    Goto(String),
    Act(Action),
    Ask(Action, Done),
}

/// What follows when the action a command asked for went well.
#[derive(Debug)]
pub(super) enum Done {
    Nothing,
    Kernel { name: String, url: String, args: String },
    Initrd { name: String, url: String, args: String },
    BootNow { name: String, url: String, args: String },
    Replaced,
}

impl Done {
    pub(super) fn succeed(self, state: &mut State) -> Option<Action> {
        match self {
            Self::Nothing => None,
            Self::Kernel { name, url, args } => {
                state.select(name, url, args);
                None
            }
            Self::Initrd { name, url, args } => {
                state.images.push(Image { name, url, args });
                None
            }
            Self::BootNow { name, url, args } => {
                state.select(name, url, args);
                state.handover().map(Action::Boot)
            }
            Self::Replaced => Some(Action::End(Ok(()))),
        }
    }
}

impl State {
    fn select(&mut self, name: String, url: String, args: String) {
        self.selected = Some(url.clone());
        self.images.push(Image { name, url, args });
    }

    fn handover(&self) -> Option<Handover> {
        let selected = self.selected.as_ref()?;
        let kernel = self.images.iter().find(|image| image.url == *selected)?;
        let others = self.images.iter().filter(|image| image.url != *selected);
        Some(Handover {
            kernel: kernel.url.clone(),
            args: kernel.args.clone(),
            initrds: others.map(|image| image.url.clone()).collect(),
        })
    }

    fn image(&mut self, name: &str) -> Option<&mut Image> {
        self.images.iter_mut().find(|image| image.name == name)
    }
}

/// Runs one command whose words are expanded already.
pub(super) fn run(words: &[&str], state: &mut State) -> Step {
    let Some((command, rest)) = words.split_first() else { return Step::Ok };
    match (*command, rest) {
        ("echo", rest) => Step::Act(Action::Print(rest.join(" "))),
        ("set", [name, value @ ..]) => {
            state.settings.set(name, &value.join(" "));
            Step::Ok
        }
        ("clear", [name]) => {
            state.settings.set(name, "");
            Step::Ok
        }
        ("inc", [name]) => inc(state, name, "1"),
        ("inc", [name, step]) => inc(state, name, step),
        ("isset", [value]) if !value.is_empty() => Step::Ok,
        ("isset", _) => Step::Failed("isset: not set".to_owned()),
        ("iseq", [one, other]) if one == other => Step::Ok,
        ("iseq", [_, _]) => Step::Failed("iseq: not equal".to_owned()),
        ("goto", [label]) => Step::Goto((*label).to_owned()),
        ("kernel", rest) => {
            fetch(command, rest, |name, url, args| Done::Kernel { name, url, args })
        }
        ("initrd" | "imgfetch" | "module", rest) => {
            fetch(command, rest, |name, url, args| Done::Initrd { name, url, args })
        }
        ("imgargs", [name, args @ ..]) => imgargs(state, name, args),
        ("imgfree", _) => {
            state.images.clear();
            state.selected = None;
            Step::Ok
        }
        ("boot" | "imgexec", rest) => boot(command, rest, state),
        ("chain", rest) => chain(rest),
        ("sanboot", rest) => sanboot(rest),
        ("sleep", [seconds]) => sleep(seconds),
        ("exit", []) => Step::Act(Action::End(Ok(()))),
        ("exit", [status, ..]) => Step::Act(Action::End(exit_status(status))),
        ("reboot", _) => Step::Act(Action::Reboot),
        ("poweroff", _) => Step::Act(Action::PowerOff),
        ("shell", _) => Step::Act(Action::Hang),
        ("prompt", rest) => prompt(rest),
        ("menu", _) => {
            state.items.clear();
            Step::Ok
        }
        ("item", rest) => item(rest, state),
        ("choose", rest) => choose(rest, state),
        // There is one interface, and it is configured before the first script runs.
        ("ifconf" | "dhcp" | "ifopen" | "ifclose", _) => Step::Ok,
        ("clear" | "set" | "inc" | "iseq" | "goto" | "imgargs" | "sleep", _) => usage(command),
        _ => Step::Failed(format!("{command}: command not found")),
    }
}

fn inc(state: &mut State, name: &str, step: &str) -> Step {
    let text = state.settings.get(name);
    let have = if text.is_empty() { Ok(0) } else { text.parse::<u32>() };
    match (have, step.parse::<u32>()) {
        (Ok(have), Ok(step)) => {
            state.settings.set(name, &have.wrapping_add(step).to_string());
            Step::Ok
        }
        _ => Step::Failed(format!("inc: {name} is no number")),
    }
}

fn usage(command: &str) -> Step {
    Step::Failed(format!("{command}: wrong number of arguments"))
}

/// Options in front of the operands: those in `with_value` take the next word, others stand alone.
fn options<'a>(words: &[&'a str], with_value: &[&str]) -> (Vec<(&'a str, &'a str)>, Vec<&'a str>) {
    let mut found = Vec::new();
    let mut words = words.iter().copied().peekable();
    while let Some(word) = words.next_if(|word| word.starts_with('-') && word.len() > 1) {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, value),
            None if with_value.contains(&word) => (word, words.next().unwrap_or_default()),
            None => (word, ""),
        };
        found.push((name, value));
    }
    (found, words.collect())
}

const IMAGE_OPTIONS: [&str; 4] = ["-n", "--name", "-t", "--timeout"];

fn fetch(command: &str, rest: &[&str], done: impl Fn(String, String, String) -> Done) -> Step {
    let (options, operands) = options(rest, &IMAGE_OPTIONS);
    let Some((url, args)) = operands.split_first() else { return usage(command) };
    let name = named(&options).unwrap_or_else(|| file_name(url));
    let url = (*url).to_owned();
    Step::Ask(Action::Fetch { url: url.clone() }, done(name, url, args.join(" ")))
}

fn named(options: &[(&str, &str)]) -> Option<String> {
    let name = options.iter().find(|(option, _)| matches!(*option, "-n" | "--name"))?.1;
    Some(name.to_owned())
}

/// The name iPXE gives an image: the last part of its path, without the query.
fn file_name(url: &str) -> String {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

fn imgargs(state: &mut State, name: &str, args: &[&str]) -> Step {
    match state.image(name) {
        Some(image) => {
            image.args = args.join(" ");
            Step::Ok
        }
        None => Step::Failed(format!("imgargs: no such image: {name}")),
    }
}

fn boot(command: &str, rest: &[&str], state: &mut State) -> Step {
    let (_, operands) = options(rest, &IMAGE_OPTIONS);
    match operands.split_first() {
        None => match state.handover() {
            Some(handover) => Step::Act(Action::Boot(handover)),
            None => Step::Failed(format!("{command}: no image was selected")),
        },
        Some((name, args)) => match state.images.iter().find(|image| image.name == *name) {
            Some(image) => {
                let url = image.url.clone();
                state.selected = Some(url);
                if !args.is_empty() {
                    imgargs(state, name, args);
                }
                state.handover().map_or(Step::Ok, |handover| Step::Act(Action::Boot(handover)))
            }
            None => fetch(command, rest, |name, url, args| Done::BootNow { name, url, args }),
        },
    }
}

fn chain(rest: &[&str]) -> Step {
    let (options, operands) = options(rest, &IMAGE_OPTIONS);
    let Some(url) = operands.first() else { return usage("chain") };
    let replace = options.iter().any(|(option, _)| matches!(*option, "-r" | "--replace"));
    let done = if replace { Done::Replaced } else { Done::Nothing };
    Step::Ask(Action::Chain { url: (*url).to_owned(), replace }, done)
}

fn sanboot(rest: &[&str]) -> Step {
    let (options, operands) =
        options(rest, &["-d", "--drive", "-f", "--filename", "-e", "--extra"]);
    if let Some(url) = operands.first() {
        return Step::Failed(format!("sanboot: {url}: this machine has no SAN"));
    }
    let drive = options.iter().find(|(option, _)| matches!(*option, "-d" | "--drive"));
    let drive = drive.map_or(Some(0x80), |(_, number)| parse_drive(number));
    match drive {
        Some(drive) => Step::Ask(Action::Sanboot { drive }, Done::Nothing),
        None => usage("sanboot"),
    }
}

fn parse_drive(text: &str) -> Option<u8> {
    text.strip_prefix("0x")
        .map_or_else(|| text.parse().ok(), |hex| u8::from_str_radix(hex, 16).ok())
}

fn sleep(seconds: &str) -> Step {
    match seconds.parse() {
        Ok(seconds) => Step::Act(Action::Sleep { seconds }),
        Err(_) => Step::Failed(format!("sleep: no number: {seconds}")),
    }
}

/// An entry: its label, and whatever text. One with `--gap` has no label.
fn item(rest: &[&str], state: &mut State) -> Step {
    let (options, operands) = options(rest, &["-m", "--menu", "-k", "--key"]);
    if options.iter().any(|(option, _)| matches!(*option, "-g" | "--gap")) {
        return Step::Ok;
    }
    let Some(label) = operands.first() else { return usage("item") };
    if state.items.len() < MOST_ITEMS {
        state.items.push((*label).to_owned());
    }
    Step::Ok
}

/// Nobody sits at a modelled console: with a time limit the default is taken, without one it waits for ever.
fn choose(rest: &[&str], state: &mut State) -> Step {
    let with_value = ["-m", "--menu", "-d", "--default", "-t", "--timeout"];
    let (options, operands) = options(rest, &with_value);
    let value = |short, long| {
        let mut found = options.iter().filter(|(name, _)| *name == short || *name == long);
        found.next().map(|(_, value)| *value)
    };
    let [setting] = operands.as_slice() else { return usage("choose") };
    if state.items.is_empty() {
        return Step::Failed("choose: no menu".to_owned());
    }
    if value("-t", "--timeout").is_none() {
        return Step::Act(Action::Hang);
    }
    let wanted = value("-d", "--default");
    let chosen = state.items.iter().find(|label| Some(label.as_str()) == wanted);
    let chosen = chosen.or_else(|| state.items.first()).cloned().unwrap_or_default();
    state.settings.set(setting, &chosen);
    Step::Ok
}

fn exit_status(status: &str) -> Result<(), String> {
    if status == "0" { Ok(()) } else { Err(format!("exit {status}")) }
}

/// Nobody sits at a modelled console: a prompt with a time limit fails at once, one without waits for ever.
fn prompt(rest: &[&str]) -> Step {
    let (options, _) = options(rest, &["-k", "--key", "-t", "--timeout"]);
    if options.iter().any(|(option, _)| matches!(*option, "-t" | "--timeout")) {
        Step::Failed("prompt: nobody pressed a key".to_owned())
    } else {
        Step::Act(Action::Hang)
    }
}
