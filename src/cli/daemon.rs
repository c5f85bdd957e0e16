//! Commands that stay: `serve`, `demo`, `twin`.

use std::{fs, io::IsTerminal, path::PathBuf, time::Duration};

use tracing_subscriber::EnvFilter;

use super::{ExitCode, Trouble};
use crate::{config::Faults, demo, server};

/// How long the process waits for threads that do not end by themselves.
const LAST_WAIT: Duration = Duration::from_secs(2);

/// Serve a lab: boot services, switch engine, page and API
#[derive(Debug, clap::Args)]
pub(super) struct ServeArgs {
    /// The configuration directory
    #[arg(long, value_name = "DIR", default_value = "/etc/volund")]
    config: PathBuf,
}

/// Run emulated machines: real QEMU behind BMCs that speak IPMI, on loopback
#[derive(Debug, clap::Args)]
pub(super) struct TwinArgs {
    /// The machines, as TOML
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

/// Runs `volund serve`.
pub(super) fn serve(args: &ServeArgs) -> Result<ExitCode, Trouble> {
    stay(server::run(&args.config), "info")
}

/// Runs `volund demo`.
pub(super) fn demo(args: demo::DemoArgs) -> Result<ExitCode, Trouble> {
    if let Some(listen) = args.listen.filter(|listen| !listen.ip().is_loopback()) {
        let trouble = Trouble::usage(format!("--listen {listen} is no loopback address"));
        return Err(trouble.remedy("the demo answers on this machine only: use 127.0.0.1:PORT"));
    }
    stay(demo::run(args), "warn")
}

/// Runs `volund twin`.
pub(super) fn twin(args: &TwinArgs) -> Result<ExitCode, Trouble> {
    let path = args.config.display();
    let text = fs::read_to_string(&args.config)
        .map_err(|error| Trouble::usage(format!("cannot read {path}: {error}")))?;
    let config: twin::TwinConfig = toml::from_str(&text)
        .map_err(|error| Trouble::usage(format!("{path} cannot be understood: {error}")))?;
    let run = async {
        let stop = server::stop_on_signals()?;
        let (bound, addresses) = tokio::sync::oneshot::channel();
        tokio::spawn(async move {
            for (node, address) in addresses.await.unwrap_or_default() {
                tracing::info!(%node, bmc = %address, "emulated machine is ready");
            }
        });
        Ok(twin::run_qemu(config, stop, bound).await?)
    };
    stay(run, "info")
}

/// Runs a command that ends with a signal. `level` is the log level where `VOLUND_LOG` does not say another.
fn stay(
    command: impl Future<Output = anyhow::Result<()>>,
    level: &str,
) -> Result<ExitCode, Trouble> {
    let filter = std::env::var("VOLUND_LOG").unwrap_or_else(|_| level.to_owned());
    let filter = EnvFilter::try_new(&filter)
        .map_err(|error| Trouble::usage(format!("VOLUND_LOG={filter:?} is no filter: {error}")))?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        Trouble::new(ExitCode::Failed, format!("cannot start the runtime: {error}"))
    })?;
    let outcome = runtime.block_on(command);
    runtime.shutdown_timeout(LAST_WAIT);
    outcome.map_err(trouble)?;
    Ok(ExitCode::Ok)
}

fn trouble(error: anyhow::Error) -> Trouble {
    if let Some(faults) = error.downcast_ref::<Faults>() {
        let faults = faults.0.iter().map(ToString::to_string).collect();
        return Trouble::usage(error.to_string()).faults(faults);
    }
    let causes = error.chain().skip(1).map(|cause| format!("because {cause}")).collect();
    Trouble::new(ExitCode::Failed, error.to_string()).faults(causes)
}
