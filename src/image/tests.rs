use std::io::Read;

use super::{elf::module_with, testing::Folder, *};

/// A kernel tree with two modules, and an agent that is static.
fn small() -> (Folder, BuildAgent) {
    let folder = Folder::new();
    folder.file("tree/boot/vmlinuz-6.1", "kernel");
    folder.file(
        "tree/lib/modules/6.1/kernel/tg3.ko",
        module_with("depends=libphy\0firmware=tigon/tg3.bin\0firmware=../../etc/shadow\0"),
    );
    folder.file("tree/lib/modules/6.1/kernel/libphy.ko", module_with("depends=\0"));
    folder.file("agent", module_with(""));
    let build = BuildAgent {
        out_dir: folder.path().join("out"),
        kernel: KernelSource::Tree(folder.path().join("tree")),
        agent_binary: folder.path().join("agent"),
        modules: vec!["tg3".into(), "hpsa".into()],
        required_modules: vec![],
        firmware: None,
    };
    (folder, build)
}

fn unpacked(image: &AgentImage) -> String {
    let mut bytes = Vec::new();
    let file = File::open(&image.initrd).unwrap();
    flate2::read::GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn an_image_has_the_agent_the_modules_and_their_order() {
    let (_folder, build) = small();
    let image = build_agent(&build).unwrap();
    assert_eq!(fs::read(&image.kernel).unwrap(), b"kernel");
    assert_eq!(image.modules, ["libphy", "tg3"]);
    assert_eq!(image.initrd_bytes, fs::metadata(&image.initrd).unwrap().len());
    assert_eq!(image.initrd_sha256, sha256(&fs::read(&image.initrd).unwrap()));
    let text = unpacked(&image);
    assert!(text.contains("/lib/modules/6.1/libphy.ko\n/lib/modules/6.1/tg3.ko\n"), "{text}");
    for name in ["init\0", "dev/console\0", "dev/null\0", "proc\0", "sys\0", "modules.list\0"] {
        assert!(text.contains(name), "{name:?}");
    }
    let notes = image.notes.join("\n");
    assert!(notes.contains("module hpsa is not in kernel 6.1"), "{notes}");
    assert!(notes.contains("tigon/tg3.bin"), "{notes}");
}

#[test]
fn firmware_is_taken_from_the_named_folder_and_never_from_outside_it() {
    let (folder, mut build) = small();
    folder.file("firmware/tigon/tg3.bin", "microcode");
    folder.file("etc/shadow", "secret");
    build.firmware = Some(folder.path().join("firmware/x"));
    folder.file("firmware/x/tigon/tg3.bin.xz", "packed microcode");
    let text = unpacked(&build_agent(&build).unwrap());
    assert!(text.contains("lib/firmware/tigon/tg3.bin.xz\0"), "{text}");
    assert!(text.contains("packed microcode") && !text.contains("secret"), "{text}");
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let (_folder, build) = small();
    let first = build_agent(&build).unwrap();
    assert_eq!(build_agent(&build).unwrap(), first);
}

#[test]
fn a_dynamic_agent_and_a_script_are_refused() {
    let (folder, build) = small();
    folder.file("agent", "#!/bin/sh\n");
    let said = build_agent(&build).unwrap_err().to_string();
    assert!(
        said.contains("no little-endian 64-bit ELF") && said.contains("build-agent.sh"),
        "{said}"
    );
    let own = BuildAgent { agent_binary: env::current_exe().unwrap(), ..build };
    let said = build_agent(&own).unwrap_err().to_string();
    assert!(said.contains("linked dynamically"), "{said}");
}

#[test]
fn an_image_over_the_limit_is_refused_and_not_written() {
    let (folder, build) = small();
    let mut agent = module_with("");
    // Bytes gzip can do nothing about.
    let mut state = 1_u64;
    agent.extend((0..9_000_000).map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state.to_be_bytes()[0]
    }));
    folder.file("agent", agent);
    let error = build_agent(&build).unwrap_err();
    assert!(matches!(error, ImageError::TooLarge { .. }), "{error}");
    assert!(!build.out_dir.exists());
}

#[test]
fn a_file_that_cannot_take_its_place_leaves_nothing_behind() {
    let (folder, build) = small();
    folder.file("out/vmlinuz/in-the-way", "");
    let said = build_agent(&build).unwrap_err().to_string();
    assert!(said.contains("out/vmlinuz"), "{said}");
    let left: Vec<_> = fs::read_dir(&build.out_dir).unwrap().flatten().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn the_agent_is_found_where_it_was_named_or_built() {
    let folder = Folder::new();
    let program = folder.path().join("target/debug/volund");
    let test = folder.path().join("target/debug/deps/agent_in_qemu-0123");
    let elsewhere = folder.path().join("elsewhere");
    let find = |named, program: &Path| find_agent(named, program, &elsewhere);
    let error = find(None, &program).unwrap_err().to_string();
    assert!(error.contains("tests/build-agent.sh"), "{error}");
    folder.file("target/agent/x86_64-unknown-linux-gnu/agent/agent", "");
    let built = folder.path().join("target/agent/x86_64-unknown-linux-gnu/agent/agent");
    assert_eq!(find(None, &program).unwrap(), built);
    assert_eq!(find(None, &test).unwrap(), built);
    let foreign = Path::new("/usr/bin/volund");
    assert_eq!(find_agent(None, foreign, &folder.path().join("target")).unwrap(), built);
    folder.file("target/debug/volund-agent", "");
    let beside = folder.path().join("target/debug/volund-agent");
    assert_eq!(find(None, &program).unwrap(), beside);
    let named = folder.path().join("nowhere");
    let error = find(Some(named.clone()), &program).unwrap_err().to_string();
    assert!(error.contains(&named.display().to_string()), "a named one is not replaced: {error}");
}
