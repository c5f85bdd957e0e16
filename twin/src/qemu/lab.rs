//! All QEMU machines of a configuration, each behind a management controller: what `volund twin` runs.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bmc_proto::ipmi::LoginError;
use model::NodeName;
use tokio::{sync::oneshot, task::JoinSet, time::timeout};
use tokio_util::sync::CancellationToken;

use super::{QemuBoard, TwinConfig};
use crate::bmc::{IpmiConfig, IpmiControl, IpmiServer, IpmiServerError};

/// One machine, its management controller answering.
#[derive(Clone)]
pub struct QemuMachine {
    /// Its name.
    pub name: NodeName,
    /// Where its management controller listens.
    pub bmc: SocketAddr,
    /// Power, boot order, log.
    pub board: QemuBoard,
    /// Faults and counts of the management controller.
    pub control: IpmiControl,
}

/// Why the machines could not be had.
#[derive(Debug, thiserror::Error)]
pub enum QemuError {
    /// The configuration cannot be used; every fault at once.
    #[error("the twin's configuration cannot be used:\n  {}", .0.join("\n  "))]
    Config(Vec<String>),
    /// User or password do not fit IPMI.
    #[error("the BMC's user or password cannot be used")]
    Login(#[source] LoginError),
    /// A management controller got no socket.
    #[error("could not start the BMC of {0}")]
    Bmc(NodeName, #[source] IpmiServerError),
}

/// Running management controllers; their machines are off until told otherwise.
pub struct QemuLab {
    /// The machines, in the order of the configuration.
    pub machines: Vec<QemuMachine>,
    tasks: JoinSet<()>,
    stop: CancellationToken,
}

/// Longest wait for all machines to end; each has 3 s of its own before it is killed.
const END: Duration = Duration::from_secs(10);

impl QemuLab {
    /// Checks the configuration, binds every management controller and starts the keepers.
    ///
    /// # Errors
    /// [`QemuError`]; nothing is left running then.
    pub async fn start(config: TwinConfig) -> Result<Self, QemuError> {
        let mut faults = config.faults();
        faults.extend(config.missing_files());
        if !faults.is_empty() {
            return Err(QemuError::Config(faults));
        }
        let config = Arc::new(config);
        let stop = CancellationToken::new();
        let mut lab = Self { machines: Vec::new(), tasks: JoinSet::new(), stop };
        for machine in &config.machines {
            let token = lab.stop.clone();
            let shared = Arc::clone(&config);
            let board = QemuBoard::start(shared, machine.clone(), &mut lab.tasks, token);
            let account = IpmiConfig::new(&config.user, &config.password.0);
            let account = account.map_err(QemuError::Login)?;
            let address = SocketAddr::from((machine.bmc.address, machine.bmc.port));
            let server = IpmiServer::bind(address, Arc::new(board.clone()), account).await;
            let server = server.map_err(|error| QemuError::Bmc(machine.name.clone(), error))?;
            lab.machines.push(QemuMachine {
                name: machine.name.clone(),
                bmc: server.address(),
                board,
                control: server.control(),
            });
            lab.tasks.spawn(server.run(lab.stop.clone()));
        }
        Ok(lab)
    }

    /// The machine of that name.
    #[must_use]
    pub fn machine(&self, name: &str) -> Option<&QemuMachine> {
        self.machines.iter().find(|machine| machine.name.as_str() == name)
    }

    /// Switches every machine off and ends all tasks.
    pub async fn shutdown(mut self) {
        self.stop.cancel();
        let ended = timeout(END, async { while self.tasks.join_next().await.is_some() {} }).await;
        if ended.is_err() {
            tracing::warn!("QEMU machines did not end in time and are killed");
            self.tasks.shutdown().await;
        }
    }
}

/// Keeps the machines until `stop` fires. `bound` learns where each management controller listens.
///
/// # Errors
/// [`QemuError`], before anything runs.
pub async fn run_qemu(
    config: TwinConfig,
    stop: CancellationToken,
    bound: oneshot::Sender<Vec<(NodeName, SocketAddr)>>,
) -> Result<(), QemuError> {
    let lab = QemuLab::start(config).await?;
    let addresses = lab.machines.iter().map(|machine| (machine.name.clone(), machine.bmc));
    // Whoever asked may have gone; the machines are kept all the same.
    let _gone = bound.send(addresses.collect());
    stop.cancelled().await;
    lab.shutdown().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn machines_get_their_controllers_and_faults_are_told_before_anything_runs() {
        let text = super::super::config::tests::TWO.replace("port = 9623", "port = 0");
        let config: TwinConfig = toml::from_str(&text).unwrap();
        let mut bad = config.clone();
        bad.ovmf_vars = "/nonexistent/vars.fd".into();
        bad.machines[0].memory_mib = 1;
        let error = QemuLab::start(bad).await.err().unwrap().to_string();
        assert!(error.contains("memory_mib 1") && error.contains("package ovmf"), "{error}");

        let (sender, bound) = oneshot::channel();
        let stop = CancellationToken::new();
        let running = tokio::spawn(run_qemu(config, stop.clone(), sender));
        let bound = bound.await.unwrap();
        let names: Vec<&str> = bound.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["bios-1", "uefi-1"]);
        assert!(bound.iter().all(|(_, bmc)| bmc.ip().is_loopback() && bmc.port() != 0));
        stop.cancel();
        running.await.unwrap().unwrap();
    }
}
