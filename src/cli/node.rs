//! `volund node NAME`: everything about one node.

use api::{
    BootMethodForgotten, BootWayView, FactsView, LoopReleased, NodeDetail, NodeView, PhaseEvent,
    Quantity, SightingView,
};
use model::NodeName;

use super::{
    ExitCode, Trouble,
    client::Client,
    history, nodes,
    table::{self, Cell, Look},
    terminal::{Terminal, clean, now_ms, or_dash},
};

/// Its arguments.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Which node, such as bld-003
    name: NodeName,
    /// Print the API's answer
    #[arg(long)]
    json: bool,
    /// Let it try again: it was kept out of a boot loop
    #[arg(long, conflicts_with = "json")]
    release_loop: bool,
    /// Forget what was learnt of how it, and its model, boots
    #[arg(long, conflicts_with_all = ["json", "release_loop"])]
    forget_boot_method: bool,
}

/// Runs the command.
pub(super) async fn run(
    args: Args,
    client: &Client,
    terminal: &mut Terminal,
) -> Result<ExitCode, Trouble> {
    if args.release_loop {
        return release(&args.name, client, terminal).await;
    }
    if args.forget_boot_method {
        return forget(&args.name, client, terminal).await;
    }
    let answer = client.node(&args.name).await?;
    if args.json {
        terminal.json(&answer.json)?;
    } else {
        print(terminal, &answer.value)?;
    }
    Ok(ExitCode::Ok)
}

async fn release(
    name: &NodeName,
    client: &Client,
    terminal: &mut Terminal,
) -> Result<ExitCode, Trouble> {
    let (path, what) =
        (format!("/api/v1/nodes/{name}/release-loop"), format!("release {name} from its loop"));
    let released = client.post::<LoopReleased>(&path, &(), &what).await?.value;
    terminal.say(match released.was_held {
        true => format!("{name} was kept out of a boot loop; it boots as ordered from now on"),
        false => format!("{name} was not kept out of a boot loop"),
    })?;
    Ok(ExitCode::Ok)
}

async fn forget(
    name: &NodeName,
    client: &Client,
    terminal: &mut Terminal,
) -> Result<ExitCode, Trouble> {
    let path = format!("/api/v1/nodes/{name}/forget-boot-method");
    let what = format!("forget how {name} boots");
    let forgotten = client.post::<BootMethodForgotten>(&path, &(), &what).await?.value;
    terminal.say(match forgotten.was_known {
        true => format!("forgotten; how {name} boots is learnt anew"),
        false => format!("nothing was learnt of how {name} boots"),
    })?;
    Ok(ExitCode::Ok)
}

fn print(terminal: &mut Terminal, detail: &NodeDetail) -> Result<(), Trouble> {
    let now = now_ms();
    state(terminal, &detail.node, now)?;
    boot_method(terminal, &detail.boot_method)?;
    facts(terminal, detail.facts.as_ref(), now)?;
    timeline(terminal, &detail.timeline, now)?;
    terminal.say("\nHistory")?;
    newest(terminal, &detail.history, now)?;
    watts(terminal, &detail.power, now)
}

/// `label  text`, labels as wide as the widest of all sections.
fn line(terminal: &mut Terminal, label: &str, text: &str) -> Result<(), Trouble> {
    terminal.say(format!("{label:<12}{text}"))
}

fn boot_method(terminal: &mut Terminal, ways: &[BootWayView]) -> Result<(), Trouble> {
    for (index, BootWayView { what, way, source, failed }) in ways.iter().enumerate() {
        let source = match source.as_str() {
            "model" => "learnt of its model".to_owned(),
            other => other.to_owned(),
        };
        let failed = match failed.as_slice() {
            [] => String::new(),
            failed => format!("; {} did not work", failed.join(", ")),
        };
        let label = if index == 0 { "boots by" } else { "" };
        line(terminal, label, &clean(&format!("{what}: {way} ({source}){failed}")))?;
    }
    Ok(())
}

fn state(terminal: &mut Terminal, node: &NodeView, now: i64) -> Result<(), Trouble> {
    terminal.say(clean(&node.name))?;
    line(terminal, "bay", &nodes::bay(node))?;
    line(terminal, "address", &or_dash(Some(&node.address)))?;
    line(terminal, "MACs", &or_dash(Some(&node.macs.join(", "))))?;
    let bmc = &node.bmc;
    let suite = bmc.suite.map(|suite| format!(", cipher suite {suite}")).unwrap_or_default();
    let bmc_text = format!("{} at {}:{}{suite}", bmc.kind, bmc.address, bmc.port);
    line(terminal, "BMC", &clean(&bmc_text))?;
    if let Some(trouble) = &bmc.trouble {
        line(terminal, "", &clean(trouble))?;
    }
    let read = node.power_at_ms.map(|at| format!(", read {}", terminal.time(at, now)));
    let power = match node.power {
        api::PowerState::On => "on",
        api::PowerState::Off => "off",
        api::PowerState::Unknown => "–",
    };
    line(terminal, "power", &format!("{power}{}", read.unwrap_or_default()))?;
    line(terminal, "watts", &quantity(&node.watts))?;
    line(terminal, "profile", &clean(&nodes::profile(node)))?;
    line(terminal, "may become", &or_dash(Some(&node.profiles.join(", "))))?;
    phase(terminal, node, now)?;
    match &node.protected {
        Some(reason) => line(terminal, "protected", &clean(reason)),
        None => Ok(()),
    }
}

fn phase(terminal: &mut Terminal, node: &NodeView, now: i64) -> Result<(), Trouble> {
    let phase = &node.phase;
    let since = phase.since_ms.map(|at| format!(" since {}", terminal.time(at, now)));
    let until = phase.until_ms.filter(|_| phase.open);
    let until = until.map(|at| format!(", waits until {}", terminal.time(at, now)));
    let text = format!("{}{}{}", phase.name, since.unwrap_or_default(), until.unwrap_or_default());
    line(terminal, "phase", &clean(&text))?;
    for text in [&phase.reason, &phase.remedy].into_iter().flatten() {
        line(terminal, "", &clean(text))?;
    }
    Ok(())
}

/// The value with margin and source, or the dash with why.
fn quantity(quantity: &Quantity) -> String {
    match &quantity.absent {
        Some(why) => format!("{} ({})", or_dash(Some(&quantity.text)), clean(why)),
        None => or_dash(Some(&quantity.text)),
    }
}

fn facts(terminal: &mut Terminal, facts: Option<&FactsView>, now: i64) -> Result<(), Trouble> {
    terminal.say("\nHardware")?;
    let Some(facts) = facts else {
        return terminal.say("not reported yet; switch the node to inspect");
    };
    line(terminal, "reported", &terminal.time(facts.at_ms, now))?;
    line(terminal, "product", &or_dash(facts.product.as_deref()))?;
    line(terminal, "serial", &or_dash(facts.serial.as_deref()))?;
    line(terminal, "UUID", &or_dash(facts.uuid.as_deref()))?;
    let mode = if facts.efi { "UEFI" } else { "BIOS" };
    line(terminal, "firmware", &format!("{} ({mode})", or_dash(facts.firmware.as_deref())))?;
    for cpu in &facts.processors {
        let count = |count: Option<u32>| or_dash(count.map(|count| count.to_string()).as_deref());
        let model = or_dash(cpu.model.as_deref());
        let text = format!(
            "{}: {model}, {} cores, {} threads",
            cpu.socket,
            count(cpu.cores),
            count(cpu.threads)
        );
        line(terminal, "processor", &clean(&text))?;
    }
    let memory = facts.memory_mib.map(mib);
    line(terminal, "memory", &or_dash(memory.as_deref()))?;
    modules(terminal, facts)?;
    for warning in &facts.warnings {
        line(terminal, "warning", &clean(warning))?;
    }
    Ok(())
}

fn modules(terminal: &mut Terminal, facts: &FactsView) -> Result<(), Trouble> {
    for dimm in facts.dimms.iter().filter(|dimm| dimm.mib.is_some()) {
        let size = dimm.mib.map(mib);
        let part = or_dash(dimm.part.as_deref());
        let text = format!("{}: {} {part}", dimm.slot, or_dash(size.as_deref()));
        line(terminal, "module", &clean(&text))?;
    }
    for disk in &facts.disks {
        let model = or_dash(disk.model.as_deref());
        let serial = or_dash(disk.serial.as_deref());
        let text = format!("{}: {} {model}, serial {serial}", disk.name, gigabytes(disk.bytes));
        line(terminal, "disk", &clean(&text))?;
    }
    for nic in &facts.nics {
        let speed = nic.speed_mbit.map(|speed| format!(", {speed} Mbit/s")).unwrap_or_default();
        let driver = or_dash(nic.driver.as_deref());
        let text = format!("{}: {}, driver {driver}{speed}", nic.name, nic.mac);
        line(terminal, "interface", &clean(&text))?;
    }
    Ok(())
}

/// Whole GiB where it is whole, else MiB.
fn mib(mib: u64) -> String {
    if mib != 0 && mib.is_multiple_of(1_024) {
        format!("{} GiB", mib / 1_024)
    } else {
        format!("{mib} MiB")
    }
}

/// Disks are sold in powers of ten.
fn gigabytes(bytes: u64) -> String {
    if bytes < 1_000_000_000 {
        format!("{} MB", bytes / 1_000_000)
    } else {
        format!("{} GB", bytes / 1_000_000_000)
    }
}

fn timeline(terminal: &mut Terminal, sightings: &[SightingView], now: i64) -> Result<(), Trouble> {
    terminal.say("\nLast boot")?;
    if sightings.is_empty() {
        terminal.say("nothing seen on the wire yet")?;
    }
    for sighting in sightings {
        let time = terminal.time(sighting.at_ms, now);
        terminal.say(format!("{time}  {}", clean(&sighting.text)))?;
    }
    Ok(())
}

fn newest(terminal: &mut Terminal, events: &[PhaseEvent], now: i64) -> Result<(), Trouble> {
    const SHOWN: usize = 10;
    history::print(terminal, events.get(..SHOWN).unwrap_or(events), now)?;
    if let Some(more) = events.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        terminal.say(format!("{more} more: volund history NODE"))?;
    }
    Ok(())
}

/// The last readings; gaps are said, not filled.
fn watts(terminal: &mut Terminal, readings: &[Quantity], now: i64) -> Result<(), Trouble> {
    const SHOWN: usize = 6;
    terminal.say("\nWatts of the last hour")?;
    if readings.is_empty() {
        return terminal.say("no reading");
    }
    let first = readings.len().saturating_sub(SHOWN);
    let row = |reading: &Quantity| -> Vec<Cell> {
        let time = reading.to_ms.map(|at| terminal.time(at, now));
        vec![or_dash(time.as_deref()).into(), Cell::new(quantity(reading), Look::Plain)]
    };
    let rows: Vec<_> = readings.iter().skip(first).map(row).collect();
    table::print(terminal, &["READ", "POWER"], &rows)?;
    let absent = readings.iter().filter(|reading| reading.value.is_none()).count();
    let gaps = if absent == 0 { String::new() } else { format!(", {absent} without a value") };
    terminal.say(format!("{} readings{gaps}", readings.len()))
}
