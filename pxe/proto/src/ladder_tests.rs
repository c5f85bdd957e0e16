//! Machines that teach how they boot.

use proptest::prelude::*;

use super::*;

const BIOS: ClientArch = ClientArch(0);
const EFI: ClientArch = ClientArch(7);

fn ladders() -> BTreeMap<ClientArch, Vec<String>> {
    let ladder = |names: &[&str]| names.iter().map(ToString::to_string).collect();
    [(BIOS, ladder(&["undionly.kpxe", "ipxe.pxe"])), (EFI, ladder(&["snponly.efi", "ipxe.efi"]))]
        .into()
}

fn firmware() -> Sighted {
    discover("x64 UEFI (7)")
}

fn discover(client: &str) -> Sighted {
    let (kind, client) = (DhcpKind::Discover, client.to_owned());
    Sighted::DhcpIn { kind, xid: 1, client, relay: None, proxy: false }
}

fn fetched(file: &str) -> Sighted {
    Sighted::TftpDone { file: file.to_owned(), bytes: 1, millis: 1 }
}

fn script(what: &str) -> Sighted {
    Sighted::Script { what: what.to_owned() }
}

/// A machine that is watched.
struct Bench {
    method: BootMethod,
    open: Open,
    efi: bool,
    ladders: BTreeMap<ClientArch, Vec<String>>,
}

impl Bench {
    fn new(efi: bool) -> Self {
        Self { method: BootMethod::default(), open: Open::default(), efi, ladders: ladders() }
    }

    fn see(&mut self, second: i64, what: &Sighted) -> Vec<Lesson> {
        let school = School { ladders: &self.ladders, efi: self.efi, loaders: true, local: true };
        self.method.saw(&mut self.open, &school, what, UnixMillis(second * 1_000))
    }

    fn all(&mut self, events: &[(i64, Sighted)]) -> Vec<String> {
        let lessons = events.iter().flat_map(|(second, what)| self.see(*second, what));
        lessons.map(|lesson| lesson.to_string()).collect()
    }

    fn loader(&self) -> Option<String> {
        self.method.chosen_loaders(&self.ladders).get(&EFI).cloned()
    }
}

#[test]
fn a_loader_that_is_heard_of_works_for_good() {
    let signs =
        [discover("iPXE"), script("inspect"), Sighted::TftpRead { file: "autoexec.ipxe".into() }];
    for sign in signs {
        let mut bench = Bench::new(true);
        let told = bench.all(&[(0, firmware()), (1, fetched("snponly.efi")), (9, sign)]);
        assert_eq!(told, ["its firmware starts snponly.efi"]);
        // Whatever happens later: power cuts, a silent boot, a firmware that was set anew.
        let later: Vec<_> = (1..20)
            .flat_map(|n| [(n * 30, fetched("snponly.efi")), (n * 30 + 5, firmware())])
            .collect();
        assert_eq!(bench.all(&later), Vec::<String>::new());
        assert_eq!(bench.loader(), None);
    }
}

#[test]
fn a_loader_that_firmware_refuses_at_once_is_left_for_the_next() {
    let mut bench = Bench::new(true);
    let told = bench.all(&[(0, firmware()), (1, fetched("snponly.efi")), (4, firmware())]);
    assert_eq!(told, ["its firmware fetches snponly.efi and does not start it; ipxe.efi is next"]);
    assert_eq!(bench.loader().as_deref(), Some("ipxe.efi"));
    let told = bench.all(&[(5, fetched("ipxe.efi")), (9, discover("iPXE"))]);
    assert_eq!(told, ["its firmware starts ipxe.efi"]);
    assert_eq!(bench.loader().as_deref(), Some("ipxe.efi"));
}

#[test]
fn a_boot_cut_short_or_silent_needs_a_second_one_like_it() {
    for ends in [[(60, firmware()), (200, firmware())], [(400, firmware()), (900, firmware())]] {
        let mut bench = Bench::new(true);
        let [first, second] = ends;
        let told = bench.all(&[(0, fetched("snponly.efi")), first.clone()]);
        assert_eq!((told.len(), bench.loader()), (0, None));
        let told = bench.all(&[(first.0 + 1, fetched("snponly.efi")), second]);
        assert_eq!((told.len(), bench.loader().as_deref()), (1, Some("ipxe.efi")));
    }
}

#[test]
fn where_no_loader_works_the_first_one_stays_and_it_is_said_once() {
    let mut bench = Bench::new(true);
    let mut told = vec![];
    for n in 0..30 {
        let loader = bench.loader().unwrap_or_else(|| "snponly.efi".to_owned());
        told.extend(bench.all(&[(n * 10, fetched(&loader)), (n * 10 + 3, firmware())]));
    }
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[1].contains("nor any other loader"), "{told:?}");
    assert_eq!(bench.loader(), None);
}

#[test]
fn a_machine_that_comes_back_from_its_disk_is_sent_another_way() {
    let back =
        |from: i64| [(from, script("local boot (nothing is ordered)")), (from + 60, firmware())];
    let mut bench = Bench::new(false);
    assert_eq!(bench.all(&back(0)), Vec::<String>::new(), "somebody may have pressed reset");
    let want =
        "sent to its disk with local_boot \"auto\" it comes back to network boot; \"exit\" is next";
    assert_eq!(bench.all(&back(100)), [want]);
    assert_eq!(bench.method.chosen_local(false), LocalBoot::Exit);
    let told = bench.all(&[(200, script("local boot (x)")), (230, discover(""))]);
    assert_eq!(told, ["it goes on to its disk with local_boot \"exit\""]);
    assert_eq!(bench.all(&back(300)), Vec::<String>::new());
    assert_eq!(bench.all(&back(400)), Vec::<String>::new());
    assert_eq!(bench.method.chosen_local(false), LocalBoot::Exit, "never back");
}

#[test]
fn a_machine_that_stays_away_found_its_disk() {
    let mut bench = Bench::new(true);
    let told = bench.all(&[(0, script("local boot (x)")), (500, firmware())]);
    assert_eq!(told, ["it goes on to its disk with local_boot \"auto\""]);
    assert!(!bench.method.is_peculiar());
}

#[test]
fn on_every_way_failed_the_first_stays() {
    for efi in [false, true] {
        let mut bench = Bench::new(efi);
        let boots: Vec<_> = (0..40)
            .flat_map(|n| [(n * 60, script("local boot (x)")), (n * 60 + 30, firmware())])
            .collect();
        let told = bench.all(&boots);
        assert_eq!(told.len(), local_ways(efi).len());
        assert!(told.last().unwrap().contains("boot order"), "{told:?}");
        assert_eq!(bench.method.chosen_local(efi), LocalBoot::ByFirmware);
    }
}

#[test]
fn switching_the_power_teaches_nothing() {
    let mut bench = Bench::new(true);
    for n in 0..5 {
        bench.see(n * 100, &fetched("snponly.efi"));
        bench.see(n * 100 + 1, &script("local boot (x)"));
        bench.open.interrupt();
        assert_eq!(bench.see(n * 100 + 5, &firmware()), []);
    }
    assert_eq!(bench.method.chosen_local(true), LocalBoot::ByFirmware);
}

#[test]
fn what_is_configured_is_not_learnt() {
    let (ladders, mut open) = (ladders(), Open::default());
    let mut method = BootMethod::default();
    let school = School { ladders: &ladders, efi: true, loaders: false, local: false };
    for n in 0..10 {
        for what in [fetched("snponly.efi"), firmware(), script("local boot (x)"), firmware()] {
            let lessons = method.saw(&mut open, &school, &what, UnixMillis(n * 100));
            assert_eq!(lessons, []);
        }
    }
    assert_eq!(method, BootMethod::default());
}

#[test]
fn a_machine_follows_its_model_until_it_knows_better() {
    let mut bench = Bench::new(true);
    bench.all(&[
        (1, fetched("snponly.efi")),
        (4, firmware()),
        (5, fetched("ipxe.efi")),
        (9, discover("iPXE")),
    ]);
    let model = bench.method;
    assert!(model.is_peculiar());
    let fresh = BootMethod::default().with_model(&model);
    assert_eq!(fresh.chosen_loaders(&ladders())[&EFI], "ipxe.efi");
    let own = BootMethod {
        loaders: [("ipxe.efi".to_owned(), Standing::Failed)].into(),
        ..BootMethod::default()
    };
    assert_eq!(own.with_model(&model).chosen_loaders(&ladders()), BTreeMap::new());
}

#[test]
fn every_way_has_a_name() {
    for efi in [false, true] {
        for way in local_ways(efi) {
            assert_eq!(local_way(local_name(*way)), Some(*way));
        }
    }
    assert_eq!(local_way("x"), None);
}

proptest! {
    /// Whatever happens: what worked is never left, and a choice changes only so often as there are rungs.
    #[test]
    fn it_never_goes_back_and_forth(
        events in prop::collection::vec((0..8_u8, -5..400_i64), 0..200),
        efi: bool,
    ) {
        let mut bench = Bench::new(efi);
        let mut now = 0;
        let mut choices = vec![(bench.loader(), bench.method.chosen_local(efi))];
        for (kind, pause) in events {
            now += pause;
            let loader = bench.loader().unwrap_or_else(|| "snponly.efi".to_owned());
            let what = match kind {
                0 | 1 => fetched(&loader),
                2 | 3 => firmware(),
                4 => script("local boot (x)"),
                5 => discover("iPXE"),
                6 => discover(""),
                _ => script("inspect"),
            };
            bench.see(now, &what);
            let choice = (bench.loader(), bench.method.chosen_local(efi));
            if choices.last() != Some(&choice) {
                choices.push(choice);
            }
        }
        prop_assert!(choices.len() <= 2 + 1 + local_ways(efi).len(), "{choices:?}");
    }
}
