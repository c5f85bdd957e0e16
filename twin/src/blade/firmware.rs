//! From power-on to a kernel: self test, boot order, the PXE ROM, iPXE.

use std::{net::SocketAddr, sync::atomic::Ordering};

use bmc_proto::ipmi::boot_options::BootDevice;
use tokio::time::sleep;

use super::{End, Machine, strikes, system};
use crate::{
    dhcp::{Asker, DhcpClient, DhcpError, Lease},
    draw::Stage,
    hardware::{MANUFACTURER, PRODUCT},
    http::{HttpClient, Keep, Request, Url},
    ipxe::{Action, Handover, Script, State},
    tftp,
};

/// Where firmware looks, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Device {
    Network,
    Disk,
}

/// Scripts that call each other deeper than this are a loop.
const MOST_NESTED: usize = 8;

/// What the network boot came to.
enum Netboot {
    /// The machine's run ended.
    Ended(End),
    /// Firmware goes on to the next device.
    NextDevice,
}

impl Machine<'_> {
    /// Self test and boot devices, then whatever was found.
    pub(super) async fn boot(&mut self) -> End {
        self.blade.set_stage(Stage::Firmware);
        let pace = self.blade.spec.pace;
        sleep(pace.post + pace.post_spread.mul_f64(self.chance.unit())).await;
        for device in self.order() {
            match device {
                Device::Network => {
                    if let Netboot::Ended(end) = self.network().await {
                        return end;
                    }
                }
                Device::Disk if self.blade.disk_boots.load(Ordering::Relaxed) => {
                    return self.disk().await;
                }
                Device::Disk => self.blade.log.console("non-system disk or disk error"),
            }
        }
        self.blade.log.step("no boot device");
        std::future::pending().await
    }

    fn order(&self) -> Vec<Device> {
        let has_disk = !self.blade.spec.hardware.disks.is_empty();
        let network_first = match self.blade.use_override() {
            Some(wanted) => wanted.device == BootDevice::Pxe,
            None => false,
        };
        let mut order = if network_first {
            vec![Device::Network, Device::Disk]
        } else {
            vec![Device::Disk, Device::Network]
        };
        order.retain(|device| *device == Device::Network || has_disk);
        order
    }

    /// The system on the disk. It says nothing on the network.
    async fn disk(&mut self) -> End {
        self.blade.log.step("disk boot");
        self.blade.set_stage(Stage::Idle);
        system(self.blade, self.power.clone(), std::future::pending()).await
    }

    async fn network(&mut self) -> Netboot {
        if self.blade.faults.never_asks_dhcp.load(Ordering::Relaxed) {
            self.blade.log.step("no link");
            return Netboot::NextDevice;
        }
        let Some(lease) = self.lease(Asker::Rom).await else { return Netboot::NextDevice };
        if !self.loader(&lease).await {
            return Netboot::NextDevice;
        }
        let Some(lease) = self.lease(Asker::Ipxe).await else { return Netboot::NextDevice };
        self.ipxe(&lease).await
    }

    async fn lease(&mut self, asker: Asker) -> Option<Lease> {
        let hardware = &self.blade.spec.hardware;
        let [mac, ..] = hardware.macs;
        let mut client = DhcpClient {
            port: self.port,
            mac,
            uuid: hardware.uuid,
            asker,
            scale: self.blade.spec.pace.scale,
            log: &self.blade.log,
        };
        match client.run(self.chance).await {
            Ok(lease) if lease.address.is_loopback() => Some(lease),
            Ok(lease) => {
                let address = lease.address;
                self.failed(
                    "dhcp",
                    &format!("{address} is outside 127.0.0.0/8, where blades live"),
                );
                None
            }
            Err(error @ (DhcpError::NoOffer | DhcpError::NoFile | DhcpError::Refused)) => {
                self.failed("dhcp", &error.to_string());
                None
            }
        }
    }

    /// Loads what the ROM was told to load. Whatever it is, it behaves like iPXE.
    async fn loader(&mut self, lease: &Lease) -> bool {
        let Some(services) = *self.services.borrow() else { return false };
        let server = SocketAddr::from((lease.next_server, services.tftp_port));
        let step = format!("tftp {}", lease.file);
        match tftp::read(lease.address, server, &lease.file).await {
            Ok(bytes) => {
                self.blade.log.step(step);
                self.blade.bytes.fetch_add(bytes, Ordering::Relaxed);
                true
            }
            Err(error) => {
                self.failed(&step, &error.to_string());
                false
            }
        }
    }

    /// iPXE with its lease: fetches what DHCP named and runs it.
    async fn ipxe(&mut self, lease: &Lease) -> Netboot {
        let mut state = State::default();
        self.settings(&mut state, lease);
        let file = state.settings.expand(&lease.file);
        let mut client = HttpClient::new(lease.address, "iPXE/1.0.0+ (modelled)");
        let fetched = match Url::parse(&file) {
            Ok(url) => self.fetch_script(&mut client, &url).await.map(|script| (script, url)),
            Err(error) => Err(error.to_string()),
        };
        match fetched {
            Ok((script, url)) => self.run_scripts(&mut client, &mut state, script, url).await,
            Err(why) => {
                self.blade.log.console(why);
                Netboot::NextDevice
            }
        }
    }

    fn settings(&self, state: &mut State, lease: &Lease) {
        let hardware = &self.blade.spec.hardware;
        let [mac, ..] = hardware.macs;
        let values = [
            ("mac", mac.to_string()),
            ("ip", lease.address.to_string()),
            ("next-server", lease.next_server.to_string()),
            ("filename", lease.file.clone()),
            ("uuid", hardware.uuid.to_string()),
            ("serial", hardware.serial.clone()),
            ("manufacturer", MANUFACTURER.to_owned()),
            ("product", PRODUCT.to_owned()),
            ("platform", "pcbios".to_owned()),
            ("buildarch", "i386".to_owned()),
        ];
        for (name, value) in values {
            state.settings.set(name, &value);
        }
    }

    /// Runs a script and those it calls, until a kernel starts or firmware goes on.
    async fn run_scripts(
        &mut self,
        client: &mut HttpClient,
        state: &mut State,
        script: Script,
        base: Url,
    ) -> Netboot {
        let mut stack = vec![(script, base)];
        let mut outcome = Ok(());
        while let Some((script, base)) = stack.last_mut() {
            let base = base.clone();
            let last = std::mem::replace(&mut outcome, Ok(()));
            match script.next(state, last) {
                Action::Print(line) => self.blade.log.console(line),
                Action::Fetch { url } => outcome = self.fetch_image(client, &base, &url).await,
                Action::Chain { url, replace } => {
                    match self.chained(client, &base, &url, stack.len()).await {
                        Ok(next) if replace => {
                            stack.clear();
                            stack.push(next);
                        }
                        Ok(next) => stack.push(next),
                        Err(why) => outcome = Err(why),
                    }
                }
                Action::End(result) => {
                    stack.pop();
                    outcome = result;
                }
                Action::Boot(handover) => {
                    return Netboot::Ended(self.start(&base, &handover).await);
                }
                Action::Sanboot { drive } => {
                    if drive == 0x80 && self.blade.disk_boots.load(Ordering::Relaxed) {
                        return Netboot::Ended(self.disk().await);
                    }
                    outcome = Err(format!("could not boot from SAN device {drive:#04x}"));
                }
                Action::Sleep { seconds } => {
                    sleep(self.blade.spec.pace.scaled(seconds.min(3600))).await;
                }
                Action::Reboot => return Netboot::Ended(End::Reset),
                Action::PowerOff => return Netboot::Ended(End::Off),
                Action::Hang => std::future::pending().await,
            }
        }
        Netboot::NextDevice
    }

    async fn chained(
        &mut self,
        client: &mut HttpClient,
        base: &Url,
        url: &str,
        depth: usize,
    ) -> Result<(Script, Url), String> {
        if depth >= MOST_NESTED {
            return Err(format!("chain: {url}: scripts call each other too deep"));
        }
        let url = base.join(url).map_err(|error| error.to_string())?;
        Ok((self.fetch_script(client, &url).await?, url))
    }

    async fn fetch_script(&mut self, client: &mut HttpClient, url: &Url) -> Result<Script, String> {
        let body = self.fetch(client, url, Keep::Body).await?;
        let script = Script::parse(&String::from_utf8_lossy(&body));
        script.map_err(|error| format!("{}: {error}", shown(url)))
    }

    async fn fetch_image(
        &mut self,
        client: &mut HttpClient,
        base: &Url,
        url: &str,
    ) -> Result<(), String> {
        let url = base.join(url).map_err(|error| error.to_string())?;
        let cut = strikes(&self.blade.faults.truncate_downloads);
        let keep = if cut { Keep::Half } else { Keep::Length };
        self.fetch(client, &url, keep).await.map(|_| ())
    }

    /// One GET that has to be answered with 200 and its whole body.
    async fn fetch(
        &mut self,
        client: &mut HttpClient,
        url: &Url,
        keep: Keep,
    ) -> Result<Vec<u8>, String> {
        let step = format!("http {}", shown(url));
        let why = match client.send(url, &Request::default(), keep).await {
            Ok(answer) if answer.status == 200 => {
                self.blade.log.step(step);
                self.blade.bytes.fetch_add(answer.length, Ordering::Relaxed);
                return Ok(answer.body);
            }
            Ok(answer) => format!("HTTP status {}", answer.status),
            Err(error) => error.to_string(),
        };
        self.failed(&step, &why);
        Err(format!("{}: {why}", shown(url)))
    }

    /// The kernel has the machine now.
    async fn start(&mut self, base: &Url, handover: &Handover) -> End {
        let initrds = handover.initrds.len();
        self.blade.log.step("kernel");
        self.blade.log.console(format!("kernel with {initrds} initrds, from {}", base.host));
        if strikes(&self.blade.faults.boot_loops) {
            self.blade.log.step("kernel panic");
            return End::Reset;
        }
        self.payload(&handover.args).await
    }

    pub(super) fn failed(&self, step: &str, why: &str) {
        self.blade.log.step(format!("{step} failed"));
        self.blade.log.console(format!("{step}: {why}"));
    }
}

/// The last part of a URL's path: enough for a log, and free of tickets, which stand before it.
pub(super) fn shown(url: &Url) -> &str {
    let path = url.target.split('?').next().unwrap_or_default();
    path.rsplit('/').next().unwrap_or_default()
}
