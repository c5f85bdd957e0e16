//! The sampler against the twin's BMC: what it makes of a BMC without a meter, of a busy one, and of a new firmware.

use std::{
    path::PathBuf,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use bmc::Bmc;
use energy::reading::MarginRule;
use inventory::series::Series;
use meter::sampler::{Latest, Metered, Sampler};
use model::{PowerKind, power::NoReading};
use profiles::world::now;
use tokio::{sync::mpsc, task::JoinSet, time::Instant};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::rig::{Rig, client, node, quick};

/// A sampler of one node that reads five times a second.
struct Watch {
    latest: Latest,
    folder: PathBuf,
    tasks: JoinSet<()>,
    stop: DropGuard,
}

impl Watch {
    fn start(name: &str, bmc: Bmc) -> Self {
        let folder = std::env::temp_dir().join(format!("volund-{name}-{}", std::process::id()));
        let series = Arc::new(Series::open(&folder, 2).unwrap());
        let (seen, mut heard) = mpsc::channel(16);
        let (mut tasks, stop) = (JoinSet::new(), CancellationToken::new());
        tasks.spawn(async move { while heard.recv().await.is_some() {} });
        let period = Duration::from_millis(200);
        let sampler = Sampler { period, margin: MarginRule::UNCALIBRATED, series, seen };
        let metered = Metered { node: node(), bmc: Arc::new(bmc), kind: PowerKind::BladeInput };
        let latest = sampler.start(vec![metered], &mut tasks, &stop);
        Self { latest, folder, tasks, stop: stop.drop_guard() }
    }

    /// Ends the sampler, then removes its folder: it would write into it again.
    async fn end(self) {
        drop(self.stop);
        self.tasks.join_all().await;
        std::fs::remove_dir_all(&self.folder).unwrap();
    }

    /// Waits until the sample is as wanted: watts, or why there are none.
    async fn until(&self, want: Result<f64, NoReading>) {
        let bound = Instant::now() + Duration::from_secs(20);
        loop {
            let sample = self.latest.standing(&node(), now()).map(|reading| reading.watts.0);
            if sample == want {
                return;
            }
            assert!(Instant::now() < bound, "wanted {want:?}, is {sample:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_meter_that_came_with_a_new_bmc_firmware_is_found() {
    // Field case 41, f: asked again only after a change of firmware.
    let old = Rig::start_with(|config| config.dcmi = false).await;
    let address = old.address;
    let watch = Watch::start("firmware", client(address, crate::rig::PASSWORD, quick()));
    watch.until(Err(NoReading::NotSupported)).await;
    drop(old);
    watch.until(Err(NoReading::BmcSilent)).await;
    let new = Rig::start_at(address, |config| config.device.firmware_minor = 60).await;
    new.board.watts.store(67, Ordering::SeqCst);
    watch.until(Ok(67.0)).await;
    watch.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_bmc_is_neither_silent_nor_without_a_meter() {
    let rig = Rig::start().await;
    rig.board.watts.store(67, Ordering::SeqCst);
    let watch = Watch::start("busy", rig.client());
    watch.until(Ok(67.0)).await;
    rig.control.busy(u32::MAX);
    watch.until(Err(NoReading::Unusable)).await;
    rig.control.busy(0);
    watch.until(Ok(67.0)).await;
    watch.end().await;
}
