//! Scripts as iPXE gets them.

use model::{
    BootAnswer,
    boot::{BootIntent, LocalBoot, Menu, MenuAct, MenuItem},
};
use proptest::prelude::*;

use super::{check_arguments, script::*};
use crate::texts::{
    Asker, ScriptError,
    testing::{asker, boot, network, node},
};

fn write_script(answer: &BootAnswer) -> Result<String, ScriptError> {
    script(answer, &network(), &asker(&node()))
}

fn local(why: &str) -> BootAnswer {
    BootAnswer::Local { why: why.to_owned() }
}

fn wait(why: &str) -> BootAnswer {
    BootAnswer::Wait { why: why.to_owned() }
}

/// One of each entry, with `text` wherever a text is.
fn menu(text: &str) -> Menu {
    let acts = [
        MenuAct::Local,
        MenuAct::Shell,
        MenuAct::Chain { url: text.to_owned() },
        MenuAct::Tool { kernel: format!("/{text}") },
        MenuAct::Profile("inspect".parse().unwrap()),
    ];
    let items = acts.into_iter().map(|does| MenuItem { label: text.to_owned(), does });
    Menu { timeout_s: 5, items: items.collect() }
}

#[test]
fn local_boot_reads_like_this() {
    insta::assert_snapshot!(write_script(&local("no switch in flight")).unwrap(), @"
    #!ipxe
    echo volund: bld-003: local boot: no switch in flight
    iseq ${platform} efi && exit 1 ||
    sanboot --no-describe --drive 0x80 || exit
    ");
}

#[test]
fn what_was_learnt_of_a_node_shapes_its_local_boot() {
    let node = node();
    let lasts = [LocalBoot::Sanboot, LocalBoot::Exit, LocalBoot::NotFound].map(|local| {
        let asker = Asker { local, ..asker(&node) };
        let answer = BootAnswer::Local { why: "x".to_owned() };
        let text = script(&answer, &network(), &asker).unwrap();
        text.lines().skip(2).collect::<Vec<_>>().join("\n")
    });
    assert_eq!(lasts, ["sanboot --no-describe --drive 0x80 || exit 1", "exit 1", "exit 1"]);
}

#[test]
fn waiting_reads_like_this() {
    insta::assert_snapshot!(write_script(&wait("held: boot loop")).unwrap(), @"
    #!ipxe
    echo volund: bld-003: waiting: held: boot loop
    isset ${rounds} || set rounds:int32 0
    :again
    inc rounds
    iseq ${rounds} 41 && goto spent ||
    sleep 30
    chain --replace --autofree http://192.0.2.1:8067/boot.ipxe?mac=02-5a-10-00-00-01 ||
    echo volund: bld-003: no answer, error ${errno}: http://192.0.2.1:8067/boot.ipxe
    ifconf --configurator dhcp netX ||
    goto again
    :spent
    echo volund: bld-003: waited 40 rounds, restarting
    reboot
    ");
}

#[test]
fn a_kernel_reads_like_this() {
    let script = write_script(&boot("inspect", "console=ttyS0  volund.ip=192.0.2.77/24"));
    insta::assert_snapshot!(script.unwrap(), @"
    #!ipxe
    echo volund: bld-003: inspect
    imgfree
    set pause:int32 0
    :kernel
    echo volund: fetching kernel http://192.0.2.1:8067/i/inspect/vmlinuz
    kernel --name kernel http://192.0.2.1:8067/i/inspect/vmlinuz console=ttyS0 volund.ip=192.0.2.77/24 BOOTIF=01-02-5a-10-00-00-01 initrd=initrd0 && goto kernel-done ||
    echo volund: fetching kernel failed, error ${errno}: http://192.0.2.1:8067/i/inspect/vmlinuz
    inc pause 2
    iseq ${pause} 14 && goto failed ||
    sleep ${pause}
    ifconf --configurator dhcp netX ||
    goto kernel
    :kernel-done
    set pause:int32 0
    :initrd0
    echo volund: fetching initrd0 http://192.0.2.1:8067/i/inspect/initrd.gz
    initrd --name initrd0 http://192.0.2.1:8067/i/inspect/initrd.gz && goto initrd0-done ||
    echo volund: fetching initrd0 failed, error ${errno}: http://192.0.2.1:8067/i/inspect/initrd.gz
    inc pause 2
    iseq ${pause} 14 && goto failed ||
    sleep ${pause}
    goto initrd0
    :initrd0-done
    echo volund: bld-003: starting
    boot || echo volund: bld-003: the kernel did not start, error ${errno}
    :failed
    echo volund: bld-003: restarting in 60 s
    sleep 60
    reboot
    ");
}

#[test]
fn the_menu_reads_like_this() {
    let (node, menu) = (node(), menu("https://boot.netboot.xyz/a?b=c&d=e"));
    let asker = Asker { menu: Some(&menu), ..asker(&node) };
    let text = script(&local("nothing was ordered"), &network(), &asker).unwrap();
    insta::assert_snapshot!(text, @"
    #!ipxe
    prompt --key 0x6d --timeout 5000 volund: bld-003: m for the menu || goto default
    menu volund: bld-003
    item default Go on: the local disk, or what was ordered
    item item0 https://boot.netboot.xyz/a?b=c?d=e
    item item1 https://boot.netboot.xyz/a?b=c?d=e
    item item2 https://boot.netboot.xyz/a?b=c?d=e
    item item3 https://boot.netboot.xyz/a?b=c?d=e
    choose --default default --timeout 120000 choice || goto default
    goto ${choice} || goto default
    :item0
    echo volund: leave the shell with exit && shell || echo volund: no shell here
    goto default
    :item1
    chain --autofree https://boot.netboot.xyz/a?b=c&d=e || echo volund: https://boot.netboot.xyz/a?b=c&d=e failed, error ${errno}
    goto default
    :item2
    imgfree && kernel http://192.0.2.1:8067/https%3A//boot.netboot.xyz/a%3Fb%3Dc%26d%3De && boot || echo volund: http://192.0.2.1:8067/https%3A//boot.netboot.xyz/a%3Fb%3Dc%26d%3De failed, error ${errno}
    goto default
    :item3
    chain --replace --autofree http://192.0.2.1:8067/boot.ipxe?mac=02-5a-10-00-00-01&choose=inspect || echo volund: inspect failed, error ${errno}
    goto default
    :default
    echo volund: bld-003: local boot: nothing was ordered
    iseq ${platform} efi && exit 1 ||
    sanboot --no-describe --drive 0x80 || exit
    ");
    let kernel = boot("inspect", "");
    let text = script(&kernel, &network(), &asker).unwrap();
    assert!(!text.contains("menu"), "what was ordered is not for the console to choose");
}

#[test]
fn a_refused_choice_reads_like_this() {
    let why = "inspect is not started from the console:\nvolund switch bld-003 inspect";
    insta::assert_snapshot!(refused(why, &asker(&node())), @"
    #!ipxe
    echo volund: bld-003: inspect is not started from the console:
    echo volund: bld-003: volund switch bld-003 inspect
    prompt --timeout 30000 volund: bld-003: any key to go on ||
    echo volund: bld-003: local boot: nothing was changed
    iseq ${platform} efi && exit 1 ||
    sanboot --no-describe --drive 0x80 || exit
    ");
}

#[test]
fn what_ipxe_runs_by_itself_reads_like_this() {
    let (node, network) = (node(), network());
    let asker = asker(&node);
    insta::assert_snapshot!(autoexec(&network, &asker, BootIntent::Ask), @"
    #!ipxe
    set pause:int32 0
    :network
    echo volund: fetching network by DHCP
    isset ${netX/ip} || ifconf --configurator dhcp && goto network-done ||
    echo volund: fetching network failed, error ${errno}: by DHCP
    inc pause 2
    iseq ${pause} 14 && goto failed ||
    sleep ${pause}
    ifclose ||
    goto network
    :network-done
    set pause:int32 0
    :script
    echo volund: fetching script http://192.0.2.1:8067/boot.ipxe?mac=02-5a-10-00-00-01
    chain --replace --autofree http://192.0.2.1:8067/boot.ipxe?mac=02-5a-10-00-00-01 && goto script-done ||
    echo volund: fetching script failed, error ${errno}: http://192.0.2.1:8067/boot.ipxe?mac=02-5a-10-00-00-01
    inc pause 2
    iseq ${pause} 14 && goto failed ||
    sleep ${pause}
    ifconf --configurator dhcp netX ||
    goto script
    :script-done
    :failed
    echo volund: bld-003: restarting in 60 s
    sleep 60
    reboot
    ");
    let text = autoexec(&network, &asker, BootIntent::Local);
    assert!(text.ends_with("sanboot --no-describe --drive 0x80 || exit\n"), "{text}");
}

#[test]
fn arguments_that_ipxe_would_take_for_its_own_are_refused() {
    for word in [";", "||", "&&", "#x", "a${net0/mac}", "x\\", "a\0b"] {
        let answer = write_script(&boot("t", &format!("quiet {word} splash")));
        let want = ScriptError::Argument { word: word.to_owned(), loader: "iPXE" };
        assert_eq!(answer, Err(want));
        assert!(check_arguments(&format!("quiet {word} {{{{ node.name }}}}")).is_err());
    }
    let fine = "root=/dev/sda1 a=\"b c\" price=5$ x;y a&&b c||d #"; // the last one is not
    assert!(write_script(&boot("t", fine)).is_err());
    assert!(write_script(&boot("t", fine.trim_end_matches('#'))).is_ok());
}

#[test]
fn every_label_a_script_goes_to_is_in_it() {
    let (node, menu) = (node(), menu("x"));
    let asker = Asker { menu: Some(&menu), ..asker(&node) };
    let mut texts = vec![autoexec(&network(), &asker, BootIntent::Ask), refused("no", &asker)];
    for answer in [local("x"), wait("x"), boot("t", "a")] {
        texts.push(script(&answer, &network(), &asker).unwrap());
    }
    for text in texts {
        let words: Vec<&str> = text.split_whitespace().collect();
        for pair in words.windows(2).filter(|pair| pair[0] == "goto" && pair[1] != "${choice}") {
            let label = format!("\n:{}\n", pair[1]);
            assert_eq!(text.matches(&label).count(), 1, "{label} in {text}");
        }
        assert!(text.lines().all(|line| line.len() < 1_000 && !line.is_empty()), "{text}");
    }
}

/// The first word of each line.
fn commands(script: &str) -> Vec<String> {
    script.lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect()
}

/// What iPXE itself reads in a script: operators as words, and openings of an expansion.
fn signs(script: &str) -> (usize, usize) {
    let words = script.split_ascii_whitespace();
    let operators =
        words.filter(|word| matches!(*word, "||" | "&&" | ";") || word.starts_with('#'));
    (operators.count(), script.matches("${").count())
}

proptest! {
    /// Whatever the texts: no line is added, no word of ours is changed.
    #[test]
    fn no_text_adds_a_command(title: String, why: String, args: String, file in "/\\PC{0,20}") {
        let mut answer = boot(&title, &args);
        if let BootAnswer::Kernel(boot) = &mut answer {
            boot.kernel = file.clone();
            boot.initrds = vec![file];
        }
        let calm = write_script(&boot("t", "")).unwrap();
        if let Ok(script) = write_script(&answer) {
            prop_assert_eq!(commands(&script), commands(&calm));
            prop_assert_eq!(signs(&script), signs(&calm));
        }
        for answer in [wait, local] {
            let script = write_script(&answer(&why)).unwrap();
            let calm = write_script(&answer("x")).unwrap();
            prop_assert_eq!(commands(&script), commands(&calm));
            prop_assert_eq!(signs(&script), signs(&calm));
        }
        let spoken = refused(&why, &asker(&node()));
        let calm = refused(&vec!["x"; why.lines().count()].join("\n"), &asker(&node()));
        prop_assert_eq!(signs(&spoken), signs(&calm));
        prop_assert_eq!(commands(&spoken), commands(&calm));
    }

    #[test]
    fn no_text_of_a_menu_adds_a_command(text: String) {
        let node = node();
        let write = |text: &str| {
            let menu = menu(text);
            let asker = Asker { menu: Some(&menu), ..asker(&node) };
            script(&local("x"), &network(), &asker).unwrap()
        };
        let (nasty, calm) = (write(&text), write("x"));
        prop_assert_eq!(commands(&nasty), commands(&calm));
        prop_assert_eq!(signs(&nasty), signs(&calm));
    }
}
