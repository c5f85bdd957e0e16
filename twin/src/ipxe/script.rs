//! Lines, labels, `||` and `&&` of an iPXE script.

use std::collections::VecDeque;

use super::{
    commands::{self, Action, Done, State, Step},
    settings::MOST_BYTES,
};

/// A running script.
#[derive(Debug)]
pub struct Script {
    lines: Vec<String>,
    /// The line that comes next.
    next: usize,
    /// What is left of the line being worked on.
    clauses: VecDeque<Clause>,
    /// How the last command of the line ended.
    failure: Option<String>,
    /// A command that waits for its outcome.
    waiting: Option<Done>,
    steps: u32,
}

/// One command of a line, and what stands before it.
#[derive(Debug, PartialEq, Eq)]
struct Clause {
    after: After,
    words: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    Anything,
    Success,
    Failure,
}

/// The text is no script.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// iPXE looks for the magic and takes anything else for another kind of image.
    #[error("exec format error: the script does not begin with #!ipxe")]
    NoMagic,
}

/// A script that runs longer without ever ending is a loop.
const MOST_STEPS: u32 = 10_000;

impl Script {
    /// Reads a script, which has to begin with `#!ipxe`.
    ///
    /// # Errors
    /// [`ScriptError::NoMagic`] for any other text.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        let first = text.lines().next().unwrap_or_default().trim_ascii_end();
        if first != "#!ipxe" && first != "#!gpxe" {
            return Err(ScriptError::NoMagic);
        }
        let lines = joined(text);
        let clauses = VecDeque::new();
        Ok(Self { lines, next: 0, clauses, failure: None, waiting: None, steps: 0 })
    }

    /// What to do next. `outcome` is how the last action went: `Ok` for the first call and for actions that
    /// cannot fail, `Err` with the reason as iPXE would print it.
    pub fn next(&mut self, state: &mut State, outcome: Result<(), String>) -> Action {
        if let Some(done) = self.waiting.take() {
            match outcome {
                Ok(()) => {
                    if let Some(action) = done.succeed(state) {
                        return action;
                    }
                }
                Err(why) => return self.fail(state, why),
            }
        }
        loop {
            self.steps += 1;
            if self.steps > MOST_STEPS {
                return Action::End(Err("the script loops and never ends".to_owned()));
            }
            if let Some(action) = self.step(state) {
                return action;
            }
        }
    }

    /// One command or one line further; an action when the caller is needed.
    fn step(&mut self, state: &mut State) -> Option<Action> {
        let Some(clause) = self.clauses.pop_front() else { return self.next_line() };
        let run = match clause.after {
            After::Anything => true,
            After::Success => self.failure.is_none(),
            After::Failure => self.failure.is_some(),
        };
        if !run {
            return None;
        }
        self.failure = None;
        let mut words = Vec::new();
        let mut room = MOST_BYTES;
        for word in &clause.words {
            let word = state.settings.expand(word);
            let Some(left) = room.checked_sub(word.len()) else {
                return Some(
                    self.fail(state, format!("a command of more than {MOST_BYTES} bytes")),
                );
            };
            room = left;
            words.push(word);
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match commands::run(&words, state) {
            Step::Ok => None,
            Step::Failed(why) => Some(self.fail(state, why)),
            Step::Goto(label) => self.goto(state, &label),
            Step::Act(action) => Some(action),
            Step::Ask(action, done) => {
                self.waiting = Some(done);
                Some(action)
            }
        }
    }

    /// The line ends a script when its last command failed: so iPXE does without `||`.
    fn next_line(&mut self) -> Option<Action> {
        if let Some(why) = self.failure.take() {
            return Some(Action::End(Err(why)));
        }
        let Some(line) = self.lines.get(self.next) else { return Some(Action::End(Ok(()))) };
        self.next += 1;
        self.clauses = clauses(line);
        None
    }

    /// iPXE keeps the number of the last error in `errno`; which number is of no use to a script.
    fn fail(&mut self, state: &mut State, why: String) -> Action {
        state.settings.set("errno", "0x1");
        self.failure = Some(why.clone());
        Action::Print(why)
    }

    /// Goes on behind `:label`; the rest of the line is dropped.
    fn goto(&mut self, state: &mut State, label: &str) -> Option<Action> {
        let is_it =
            |line: &String| line.strip_prefix(':').is_some_and(|name| name.trim_ascii() == label);
        let Some(found) = self.lines.iter().position(is_it) else {
            return Some(self.fail(state, format!("goto: no such label: {label}")));
        };
        self.next = found + 1;
        self.clauses.clear();
        None
    }
}

/// Lines, with those that end in a backslash joined to the next, blanks trimmed.
fn joined(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut open = String::new();
    for line in text.lines() {
        match line.trim_ascii_end().strip_suffix('\\') {
            Some(part) => open.push_str(part),
            None => {
                open.push_str(line);
                lines.push(std::mem::take(&mut open).trim_ascii().to_owned());
            }
        }
    }
    lines.push(open.trim_ascii().to_owned());
    lines
}

/// The commands of a line. Labels and comments have none; a word that begins with `#` ends the line.
fn clauses(line: &str) -> VecDeque<Clause> {
    let mut found = VecDeque::new();
    if line.starts_with(':') {
        return found;
    }
    let mut open = Clause { after: After::Anything, words: Vec::new() };
    for word in line.split_ascii_whitespace().take_while(|word| !word.starts_with('#')) {
        let after = match word {
            "||" => After::Failure,
            "&&" => After::Success,
            ";" => After::Anything,
            _ => {
                open.words.push(word.to_owned());
                continue;
            }
        };
        found.push_back(std::mem::replace(&mut open, Clause { after, words: Vec::new() }));
    }
    found.push_back(open);
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Runs `text`; fetches of a URL with `bad` in it fail. One line per action.
    fn trace(text: &str) -> Vec<String> {
        let mut state = State::default();
        state.settings.set("mac", "9c:8e:99:00:03:01");
        let mut script = Script::parse(&format!("#!ipxe\n{text}")).unwrap();
        let mut outcome = Ok(());
        let mut seen = Vec::new();
        for _ in 0..50 {
            let action = script.next(&mut state, outcome);
            outcome = match &action {
                Action::Fetch { url } | Action::Chain { url, .. } if url.contains("bad") => {
                    Err(format!("{url}: connection refused"))
                }
                _ => Ok(()),
            };
            seen.push(format!("{action:?}"));
            if matches!(action, Action::End(_) | Action::Boot(_) | Action::Reboot) {
                break;
            }
        }
        seen
    }

    #[test]
    fn a_boot_script_fetches_in_order_and_starts_what_it_fetched() {
        let seen = trace(
            "# volund\necho booting ${mac}\nkernel http://h/k a=1 \\\n  b=${mac:hexhyp}\n\
             initrd --name i http://h/i || goto failed\nboot || goto failed\n:failed\necho no",
        );
        insta::assert_snapshot!(seen.join("\n"), @r#"
        Print("booting 9c:8e:99:00:03:01")
        Fetch { url: "http://h/k" }
        Fetch { url: "http://h/i" }
        Boot(Handover { kernel: "http://h/k", args: "a=1 b=9c-8e-99-00-03-01", initrds: ["http://h/i"] })
        "#);
    }

    #[test]
    fn failures_take_the_way_the_script_says() {
        let cases: [(&str, &[&str]); 18] = [
            (
                "kernel http://bad/k || goto x\necho not here\n:x\necho here",
                &[
                    r#"Fetch { url: "http://bad/k" }"#,
                    r#"Print("http://bad/k: connection refused")"#,
                    r#"Print("here")"#,
                    "End(Ok(()))",
                ],
            ),
            (
                "frobnicate\necho never",
                &[
                    r#"Print("frobnicate: command not found")"#,
                    r#"End(Err("frobnicate: command not found"))"#,
                ],
            ),
            (
                "isset ${nothing} && echo yes || echo no",
                &[r#"Print("isset: not set")"#, r#"Print("no")"#, "End(Ok(()))"],
            ),
            ("iseq a a && echo same ||", &[r#"Print("same")"#, "End(Ok(()))"]),
            ("set n:int32 0\ninc n 2\ninc n:int32\necho ${n}", &[r#"Print("3")"#, "End(Ok(()))"]),
            ("set x 1 2\necho ${x}", &[r#"Print("1 2")"#, "End(Ok(()))"]),
            (
                "goto nowhere",
                &[
                    r#"Print("goto: no such label: nowhere")"#,
                    r#"End(Err("goto: no such label: nowhere"))"#,
                ],
            ),
            (":again\ngoto again", &[r#"End(Err("the script loops and never ends"))"#]),
            ("exit 0\necho never", &["End(Ok(()))"]),
            ("exit 1", &[r#"End(Err("exit 1"))"#]),
            (
                "boot",
                &[
                    r#"Print("boot: no image was selected")"#,
                    r#"End(Err("boot: no image was selected"))"#,
                ],
            ),
            ("sanboot --no-describe --drive 0x80", &["Sanboot { drive: 128 }", "End(Ok(()))"]),
            ("sleep 3 && reboot", &["Sleep { seconds: 3 }", "Reboot"]),
            (
                "menu x\nitem a one\nitem --gap two\nitem b three\nchoose --default b -t 9 c\ngoto ${c}\n\
                 :a\necho a\nexit 1\n:b\necho b",
                &[r#"Print("b")"#, "End(Ok(()))"],
            ),
            (
                "menu\nitem a\nchoose --default z --timeout 9 c && echo ${c} ||",
                &[r#"Print("a")"#, "End(Ok(()))"],
            ),
            (
                "choose --timeout 9 c || exit 1",
                &[r#"Print("choose: no menu")"#, r#"End(Err("exit 1"))"#],
            ),
            ("ifclose || exit 1\nifconf --configurator dhcp netX || exit 1", &["End(Ok(()))"]),
            (
                "prompt --timeout 2000 Press a key && shell ||\necho on # and on",
                &[r#"Print("prompt: nobody pressed a key")"#, r#"Print("on")"#, "End(Ok(()))"],
            ),
        ];
        for (text, want) in cases {
            assert_eq!(trace(text), want, "{text}");
        }
    }

    #[test]
    fn a_value_that_doubles_for_ever_stays_small() {
        let mut script = Script::parse("#!ipxe\n:a\nset x ${x}${x}y\ngoto a").unwrap();
        let mut state = State::default();
        let why = "a command of more than 8192 bytes".to_owned();
        assert_eq!(script.next(&mut state, Ok(())), Action::Print(why.clone()));
        assert_eq!(script.next(&mut state, Ok(())), Action::End(Err(why)));
        assert!((1..=MOST_BYTES).contains(&state.settings.get("x").len()));
        let long = trace(&format!("set x {}\necho {}", "y".repeat(8_000), "${x} ".repeat(2)));
        assert!(long[0].contains("a command of more than 8192 bytes"), "{long:?}");
    }

    #[test]
    fn only_ascii_blanks_part_words() {
        assert_eq!(trace("echo a\u{2003}b\tc\u{a0}")[0], "Print(\"a\\u{2003}b c\\u{a0}\")");
    }

    #[test]
    fn what_is_no_script_is_refused() {
        assert_eq!(Script::parse("<html>").err(), Some(ScriptError::NoMagic));
        assert_eq!(Script::parse("").err(), Some(ScriptError::NoMagic));
    }

    proptest! {
        #[test]
        fn no_script_makes_the_interpreter_panic(text in "(kernel|boot|goto|:|a|\\||&|\\$|\\{| |\n|#|\\\\|imgargs|set|é){0,60}") {
            let _actions = trace(&text);
        }
    }
}
