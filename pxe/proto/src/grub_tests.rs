//! Texts for GRUB, read by GRUB's own parser.

use std::{
    io::Write,
    process::{Command, Stdio},
};

use model::{BootAnswer, boot::LocalBoot};
use proptest::prelude::*;

use super::*;
use crate::texts::testing::{MAC, asker, boot, network, node};

fn write_config(answer: &BootAnswer) -> Result<String, ScriptError> {
    config(answer, &network(), &asker(&node()))
}

#[test]
fn local_boot_reads_like_this() {
    let text = write_config(&BootAnswer::Local { why: "no switch in flight, it's off".to_owned() });
    insta::assert_snapshot!(text.unwrap(), @"
    echo 'volund: bld-003: local boot: no switch in flight, it`s off'
    exit 1
    ");
}

#[test]
fn waiting_reads_like_this() {
    let text = write_config(&BootAnswer::Wait { why: "power is not known yet".to_owned() });
    insta::assert_snapshot!(text.unwrap(), @r#"
    echo 'volund: bld-003: waiting: power is not known yet'
    set volund_rounds="${volund_rounds}x"
    export volund_rounds
    if [ "$volund_rounds" != 'xxxxxxxxxx' ]; then
      sleep 30
      configfile '(http,192.0.2.1:8067)/grub/grub.cfg-01-02-5a-10-00-00-01'
      configfile '(tftp,192.0.2.1)/grub/grub.cfg-01-02-5a-10-00-00-01'
    fi
    echo 'volund: bld-003: waited 10 rounds, restarting'
    reboot
    "#);
}

#[test]
fn a_kernel_reads_like_this() {
    let text = write_config(&boot("inspect", "console=ttyS0  dyndbg=\"file a.c +p\""));
    insta::assert_snapshot!(text.unwrap(), @r#"
    echo 'volund: bld-003: inspect'
    set volund_failed=
    if [ -z "$volund_failed" ]; then set volund_failed=kernel; fi
    for pause in 2 4 6 8 10 12; do
      if [ "$volund_failed" = kernel ]; then
        echo 'volund: fetching kernel http://192.0.2.1:8067/i/inspect/vmlinuz'
        if linux '(http,192.0.2.1:8067)/i/inspect/vmlinuz' 'console=ttyS0' 'dyndbg=file a.c +p' 'BOOTIF=01-02-5a-10-00-00-01'; then set volund_failed=
        elif linux '(tftp,192.0.2.1)/i/inspect/vmlinuz' 'console=ttyS0' 'dyndbg=file a.c +p' 'BOOTIF=01-02-5a-10-00-00-01'; then set volund_failed=
        else
          echo 'volund: fetching kernel failed: http://192.0.2.1:8067/i/inspect/vmlinuz'
          sleep $pause
        fi
      fi
    done
    if [ -z "$volund_failed" ]; then set volund_failed=initrd; fi
    for pause in 2 4 6 8 10 12; do
      if [ "$volund_failed" = initrd ]; then
        echo 'volund: fetching initrd http://192.0.2.1:8067/i/inspect/initrd.gz'
        if initrd '(http,192.0.2.1:8067)/i/inspect/initrd.gz'; then set volund_failed=
        elif initrd '(tftp,192.0.2.1)/i/inspect/initrd.gz'; then set volund_failed=
        else
          echo 'volund: fetching initrd failed: http://192.0.2.1:8067/i/inspect/initrd.gz'
          sleep $pause
        fi
      fi
    done
    if [ -z "$volund_failed" ]; then
      echo 'volund: bld-003: starting'
      boot
      echo 'volund: bld-003: the kernel did not start'
    fi
    echo 'volund: bld-003: restarting in 60 s'
    sleep 60
    reboot
    "#);
}

#[test]
fn arguments_are_parted_as_the_kernel_parts_them() {
    let cases: [(&str, Option<&[&str]>); 12] = [
        ("", Some(&[])),
        ("quiet  splash\n", Some(&["quiet", "splash"])),
        ("a=\"b c\" d", Some(&["a=b c", "d"])),
        ("\"a=b c\" d", Some(&["a=b c", "d"])),
        ("price=5$ x;y {a} #b || (c)", Some(&["price=5$", "x;y", "{a}", "#b", "||", "(c)"])),
        ("it's", None),
        ("a\\b", None),
        ("a=\"b", None),
        ("a\"b c\"", None),
        ("a=\"b\"c", None),
        ("\"\"", None),
        ("a\0b", None),
    ];
    for (args, want) in cases {
        let want = want.map(|words| words.iter().map(ToString::to_string).collect());
        assert_eq!(words(args).ok(), want, "{args:?}");
    }
}

/// GRUB's own parser on a text; `None` where it is not installed.
fn grub_takes(text: &str) -> Option<bool> {
    let checker = Command::new("grub-script-check").stdin(Stdio::piped()).spawn();
    let mut checker = match checker {
        Ok(checker) => checker,
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "grub-script-check (grub-common): {error}");
            println!("not checked with GRUB's own parser: grub-script-check: {error}");
            return None;
        }
    };
    checker.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    Some(checker.wait().unwrap().success())
}

#[test]
fn grubs_own_parser_takes_every_text() {
    let nasty = "a=5$ ${b} $(c) `d` ; || && { } #e e=\"f g\" [ ! \u{e4} <>|*?~%";
    let answers = [
        BootAnswer::Local { why: nasty.to_owned() },
        BootAnswer::Wait { why: nasty.to_owned() },
        boot(nasty, nasty),
        boot("", ""),
    ];
    for answer in answers {
        let text = write_config(&answer).unwrap();
        assert_ne!(grub_takes(&text), Some(false), "{text}");
    }
    assert_ne!(grub_takes("if true; then\n"), Some(true), "it would take anything");
}

#[test]
fn how_a_node_goes_on_to_its_disk_is_no_matter_to_grub() {
    let node = node();
    let asker = Asker { local: LocalBoot::Sanboot, mac: MAC, ..asker(&node) };
    let text = config(&BootAnswer::Local { why: "x".to_owned() }, &network(), &asker).unwrap();
    assert!(text.ends_with("\nexit 1\n"), "{text}");
}

/// A text without what stands between single quotes, or nothing when a quote stays open.
fn outside_quotes(text: &str) -> Option<String> {
    let parts: Vec<&str> = text.split('\'').collect();
    (parts.len() % 2 == 1).then(|| parts.into_iter().step_by(2).collect::<Vec<_>>().join("''"))
}

proptest! {
    /// Whatever the texts: outside of quotes nothing changes, and no line is added.
    #[test]
    fn no_text_adds_a_command(title: String, why: String, args: String, file in "/\\PC{0,20}") {
        let mut answer = boot(&title, &args);
        if let BootAnswer::Kernel(boot) = &mut answer {
            boot.kernel = file;
        }
        if let Ok(text) = write_config(&answer) {
            // One word more stands there, unless the arguments name the interface themselves.
            let own = usize::from(boot_if(&args, MAC).is_none());
            let same = vec!["x"; words(&args).unwrap().len() - own].join(" ");
            let same = boot("t", &same);
            let plain = outside_quotes(&write_config(&same).unwrap());
            prop_assert_eq!(outside_quotes(&text), plain);
        }
        for answer in [|why| BootAnswer::Wait { why }, |why| BootAnswer::Local { why }] {
            let text = write_config(&answer(why.clone())).unwrap();
            let plain = write_config(&answer("x".to_owned())).unwrap();
            prop_assert_eq!(outside_quotes(&text), outside_quotes(&plain));
            prop_assert_eq!(text.lines().count(), plain.lines().count());
        }
    }
}
