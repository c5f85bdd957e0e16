//! `volund doctor [NODE]`: what is wrong, and what to do.

use api::{DiagnosisView, LabDoctor, NodeDoctor};
use model::NodeName;

use super::{
    ExitCode, Trouble,
    boots::print_diagnosis,
    client::Client,
    terminal::{Terminal, clean},
};

/// Its arguments.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Which node, such as bld-003; without one, all nodes with trouble, and the boot networks
    name: Option<NodeName>,
    /// Print the API's answer
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) async fn run(
    args: Args,
    client: &Client,
    terminal: &mut Terminal,
) -> Result<ExitCode, Trouble> {
    match &args.name {
        Some(name) => {
            let path = format!("/api/v1/nodes/{name}/doctor");
            let answer = client.get::<NodeDoctor>(&path, &format!("examine {name}")).await?;
            if args.json {
                terminal.json(&answer.json)?;
            } else {
                print_node(terminal, &answer.value)?;
            }
        }
        None => {
            let answer = client.get::<LabDoctor>("/api/v1/doctor", "examine the lab").await?;
            if args.json {
                terminal.json(&answer.json)?;
            } else {
                print_lab(terminal, &answer.value)?;
            }
        }
    }
    Ok(ExitCode::Ok)
}

fn print_node(terminal: &mut Terminal, said: &NodeDoctor) -> Result<(), Trouble> {
    if said.diagnoses.is_empty() {
        let found = match said.boot {
            Some(_) => "no fault found in its last boot",
            None => "no boot seen, no fault found",
        };
        return terminal.say(clean(&format!("{}: {found}", said.node)));
    }
    terminal.say(clean(&said.node))?;
    for diagnosis in &said.diagnoses {
        print_diagnosis(terminal, diagnosis)?;
        for seen in &diagnosis.evidence {
            terminal.say(clean(&format!("  seen: {seen}")))?;
        }
    }
    Ok(())
}

/// The first diagnosis of each node: the rest is at the node.
fn print_lab(terminal: &mut Terminal, said: &LabDoctor) -> Result<(), Trouble> {
    let LabDoctor { nodes, networks } = said;
    if nodes.is_empty() && networks.is_empty() {
        return terminal.say("no fault found");
    }
    for node in nodes {
        let Some(first) = node.diagnoses.first() else { continue };
        let cause = format!("{}: {}", node.node, first.cause);
        print_diagnosis(terminal, &DiagnosisView { cause, ..first.clone() })?;
    }
    for diagnosis in networks {
        print_diagnosis(terminal, diagnosis)?;
    }
    Ok(())
}
