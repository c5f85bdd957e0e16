//! A whole enclosure of modelled blades, with their management controllers and their relay.
//!
//! In two steps: [`Lab::bind`] gives the addresses volund's configuration needs, [`Lab::connect`] tells the
//! blades where volund's boot services came to be.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use bmc_proto::ipmi::LoginError;
use model::{BayNumber, EnclosureName, MacAddr, NodeName, Serial, Uuid};
use tokio::{sync::watch, task::JoinSet, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    blade::{Blade, BladeSpec, BootServices, Pace},
    bmc::{IpmiConfig, IpmiControl, IpmiServer, IpmiServerError},
    hardware::{Disk, Hardware},
    qemu::Password,
    relay::Relay,
};

/// What an enclosure is to be.
#[derive(Debug, Clone)]
pub struct LabSpec {
    /// Its name.
    pub enclosure: EnclosureName,
    /// Tells its blades from those of other enclosures: enters serials and hardware addresses.
    pub number: u8,
    /// Bays 1 to this one hold a blade; at most 64.
    pub bays: u8,
    /// Blades live at 127.0.`octet`.(10 + bay), the relay at 127.0.`octet`.1.
    pub octet: u8,
    /// Same seed, same lab.
    pub seed: u64,
    /// User of every management controller.
    pub bmc_user: String,
    /// Its password.
    pub bmc_password: Password,
    /// Blades that have disks have a system on the first one.
    pub disks_boot: bool,
    /// How fast blades live.
    pub pace: Pace,
}

/// One blade of the lab.
#[derive(Clone)]
pub struct LabBlade {
    /// Node name, such as `bld-003`.
    pub name: NodeName,
    /// Its bay.
    pub bay: BayNumber,
    /// Hardware addresses; the first one boots.
    pub macs: [MacAddr; 2],
    /// The address it is to be given.
    pub address: Ipv4Addr,
    /// Its management controller.
    pub bmc: SocketAddr,
    /// Serial of the blade.
    pub serial: Serial,
    /// UUID of the blade.
    pub uuid: Uuid,
    /// Its disks.
    pub disks: Vec<Disk>,
    /// The blade itself: log, faults, power.
    pub blade: Blade,
    /// Faults and counts of its management controller.
    pub control: IpmiControl,
}

/// Why there is no lab.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// No such bay.
    #[error("a lab of {0} bays cannot be: 1 to 64")]
    Bays(u8),
    /// The relay got no socket.
    #[error("could not bind the relay to {0}")]
    Relay(Ipv4Addr, #[source] io::Error),
    /// User or password do not fit IPMI.
    #[error("the BMC's user or password cannot be used")]
    Login(#[source] LoginError),
    /// A management controller got no socket.
    #[error("could not start the BMC of {0}")]
    Bmc(NodeName, #[source] IpmiServerError),
}

/// A running lab. Dropping it aborts all of its tasks; [`Lab::shutdown`] ends them in order.
pub struct Lab {
    /// The enclosure's name.
    pub enclosure: EnclosureName,
    /// Its blades, by bay.
    pub blades: Vec<LabBlade>,
    /// The relay's address: giaddr.
    pub relay: Ipv4Addr,
    services: watch::Sender<Option<BootServices>>,
    tasks: JoinSet<()>,
    stop: CancellationToken,
}

/// Longest wait for the tasks of a lab to end.
const END: Duration = Duration::from_secs(5);

impl Default for LabSpec {
    /// The reference enclosure, with a login nobody should use elsewhere.
    fn default() -> Self {
        Self {
            enclosure: "asgard".parse().expect("a label"),
            number: 0,
            bays: 16,
            octet: 77,
            seed: 1,
            bmc_user: "ADMIN".to_owned(),
            bmc_password: Password("twin-only".to_owned()),
            disks_boot: true,
            pace: Pace::default(),
        }
    }
}

impl Lab {
    /// Binds everything and starts the blades' tasks; all blades are off.
    ///
    /// # Errors
    /// When a socket cannot be had or the login does not fit IPMI.
    pub async fn bind(spec: &LabSpec) -> Result<Self, LabError> {
        let relay_address = Ipv4Addr::new(127, 0, spec.octet, 1);
        let services = watch::Sender::new(None);
        let (dhcp, dhcp_receiver) = watch::channel(None);
        let bound = Relay::bind(relay_address, dhcp_receiver).await;
        let mut relay = bound.map_err(|error| LabError::Relay(relay_address, error))?;
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(pass_on(services.subscribe(), dhcp, stop.clone()));
        let mut blades = Vec::new();
        for number in 1..=spec.bays {
            let bay = BayNumber::new(number).map_err(|_| LabError::Bays(spec.bays))?;
            let (blade, server) = start_blade(spec, bay).await?;
            let port = relay.port(bay);
            tasks.spawn(server.run(stop.clone()));
            tasks.spawn(blade.blade.clone().run(port, services.subscribe(), stop.clone()));
            blades.push(blade);
        }
        if blades.is_empty() {
            return Err(LabError::Bays(spec.bays));
        }
        tasks.spawn(relay.run(stop.clone()));
        let enclosure = spec.enclosure.clone();
        Ok(Self { enclosure, blades, relay: relay_address, services, tasks, stop })
    }

    /// Tells relay and blades where the boot services are; may be told again.
    pub fn connect(&self, services: BootServices) {
        self.services.send_replace(Some(services));
    }

    /// The blade in `bay`.
    #[must_use]
    pub fn blade(&self, bay: u8) -> Option<&LabBlade> {
        self.blades.iter().find(|blade| blade.bay.get() == bay)
    }

    /// Ends all tasks; those that do not end within 5 s are aborted.
    pub async fn shutdown(mut self) {
        self.stop.cancel();
        let ended = timeout(END, async { while self.tasks.join_next().await.is_some() {} }).await;
        if ended.is_err() {
            tracing::warn!("tasks of the lab did not end in time and are aborted");
            self.tasks.shutdown().await;
        }
    }
}

/// The relay needs the DHCP server only.
async fn pass_on(
    mut services: watch::Receiver<Option<BootServices>>,
    dhcp: watch::Sender<Option<SocketAddr>>,
    stop: CancellationToken,
) {
    loop {
        let server = services.borrow_and_update().map(|services| services.dhcp);
        dhcp.send_replace(server);
        let changed = stop.run_until_cancelled(services.changed()).await;
        if !matches!(changed, Some(Ok(()))) {
            return;
        }
    }
}

async fn start_blade(spec: &LabSpec, bay: BayNumber) -> Result<(LabBlade, IpmiServer), LabError> {
    let hardware = Hardware::of_bay(spec.number, bay);
    let number = bay.get();
    let name: NodeName = format!("bld-{number:03}").parse().expect("a label");
    let address = Ipv4Addr::new(127, 0, spec.octet, 10 + number);
    let blade = Blade::new(BladeSpec {
        name: name.clone(),
        bay,
        hardware: hardware.clone(),
        address,
        disk_boots: spec.disks_boot && !hardware.disks.is_empty(),
        seed: spec.seed,
        pace: spec.pace,
    });
    let config = IpmiConfig::new(&spec.bmc_user, &spec.bmc_password.0).map_err(LabError::Login)?;
    let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = IpmiServer::bind(loopback, Arc::new(blade.clone()), config).await;
    let server = server.map_err(|error| LabError::Bmc(name.clone(), error))?;
    let about = LabBlade {
        name,
        bay,
        macs: hardware.macs,
        address,
        bmc: server.address(),
        serial: Serial::new(&hardware.serial).expect("our serials are no placeholders"),
        uuid: hardware.uuid,
        disks: hardware.disks,
        control: server.control(),
        blade,
    };
    Ok((about, server))
}
