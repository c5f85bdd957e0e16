//! The board of a QEMU machine, as its management controller sees it.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

use model::Uuid;
use tokio::{sync::mpsc, task::JoinSet};
use tokio_util::sync::CancellationToken;

use super::{
    config::{MachineConfig, TwinConfig},
    machine::{Keeper, Order, Shared},
};
use crate::{
    board::{Board, BootOverride},
    draw::{Draw, Stage},
    log::Log,
};

/// Orders on their way to the keeper. A management controller that is told more at once answers "busy".
const ORDERS: usize = 16;

/// A QEMU machine's power switch, boot device and meter. Cloning gives another handle to the same machine.
#[derive(Debug, Clone)]
pub struct QemuBoard {
    shared: Arc<Shared>,
    orders: mpsc::Sender<Order>,
    uuid: Uuid,
    draw: Draw,
    since: Instant,
}

impl QemuBoard {
    /// A board for `machine`, which is off. Its keeper joins `tasks` and ends QEMU when `stop` fires.
    #[must_use]
    pub fn start(
        config: Arc<TwinConfig>,
        machine: MachineConfig,
        tasks: &mut JoinSet<()>,
        stop: CancellationToken,
    ) -> Self {
        let shared = Arc::new(Shared::default());
        let (orders, receiver) = mpsc::channel(ORDERS);
        let uuid = machine.uuid;
        let [.., seed] = machine.mac.octets();
        let keeper =
            Keeper { config, machine, shared: Arc::clone(&shared), running: None, give_back: None };
        tasks.spawn(keeper.run(receiver, stop));
        Self { shared, orders, uuid, draw: Draw::new(0, seed), since: Instant::now() }
    }

    /// Steps of the machine: power, resets, boot order.
    #[must_use]
    pub fn log(&self) -> &Log {
        &self.shared.log
    }

    fn stage(&self) -> Stage {
        let on = self.shared.on.load(Ordering::Acquire);
        match (on, self.shared.system_up.load(Ordering::Relaxed)) {
            (false, _) => Stage::Off,
            (true, false) => Stage::Firmware,
            (true, true) => Stage::Idle,
        }
    }

    /// A keeper that has this many orders waiting is stuck; more would not help it.
    fn order(&self, order: Order) {
        if self.orders.try_send(order).is_err() {
            tracing::warn!(?order, uuid = %self.uuid, "order dropped: the machine's keeper is busy");
        }
    }
}

impl Board for QemuBoard {
    fn power(&self) -> bool {
        self.shared.on.load(Ordering::Acquire)
    }

    fn power_on(&self) {
        self.order(Order::On);
    }

    fn power_off(&self) {
        self.order(Order::Off);
    }

    fn reset(&self) {
        self.order(Order::Reset);
    }

    fn power_cycle(&self) {
        self.order(Order::Cycle);
    }

    fn soft_off(&self) {
        self.order(Order::SoftOff);
    }

    fn set_boot_override(&self, wanted: Option<BootOverride>) {
        self.shared.set_wanted(wanted);
        self.order(Order::Rearm);
    }

    fn boot_override(&self) -> Option<BootOverride> {
        self.shared.wanted()
    }

    fn watts(&self) -> Option<u16> {
        self.draw.whole_watts(self.stage(), self.since.elapsed())
    }

    fn guid(&self) -> [u8; 16] {
        self.uuid.swapped().0
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bmc_proto::ipmi::boot_options::{BootDevice, FirmwareMode, Reach};

    use super::*;

    const NETWORK_ONCE: Option<BootOverride> = Some(BootOverride {
        device: BootDevice::Pxe,
        mode: FirmwareMode::Legacy,
        reach: Reach::Once,
    });

    /// A scratch folder that is short enough for a socket and goes when the test ends.
    struct Scratch(std::path::PathBuf);

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _gone = std::fs::remove_dir_all(&self.0);
        }
    }

    async fn until(board: &QemuBoard, what: &str) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while board.log().count(what) == 0 {
            assert!(Instant::now() < deadline, "no {what:?} in {:?}", board.log().steps());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    #[tokio::test]
    async fn a_qemu_machine_obeys_its_board_and_its_override_lasts_one_boot() {
        let folder = std::env::temp_dir().join(format!("volund-twin-{}", std::process::id()));
        let scratch = Scratch(folder.clone());
        let mut config: TwinConfig = toml::from_str(super::super::config::tests::TWO).unwrap();
        config.state_dir = folder;
        config.launcher.clear();
        config.machines[0].tap = None;
        let machine = config.machines[0].clone();
        let (mut tasks, stop) = (JoinSet::new(), CancellationToken::new());
        let board = QemuBoard::start(Arc::new(config), machine, &mut tasks, stop.clone());
        assert!(!board.power());
        assert_eq!(board.watts(), None);

        board.set_boot_override(NETWORK_ONCE);
        board.power_on();
        until(&board, "power on, Network first").await;
        assert!(board.power() && board.watts().is_some());
        // Two quiet seconds later the disk is first again.
        until(&board, "next boot: Disk first").await;
        assert_eq!(board.boot_override(), None, "used");
        board.set_boot_override(NETWORK_ONCE);
        until(&board, "next boot: Network first").await;
        board.reset();
        until(&board, "machine reset").await;
        board.power_off();
        until(&board, "power off").await;
        assert!(!board.power());
        let disk = std::fs::metadata(scratch.0.join("bios-1/disk0.raw")).unwrap();
        assert_eq!(disk.len(), 64 * 1024 * 1024);
        stop.cancel();
        tasks.join_all().await;
    }
}
