//! Our client against the twin's BMC in good weather.

use std::sync::atomic::Ordering;

use bmc::{
    BmcError, BootDevice, DcmiOutcome, FirmwareMode, Options, PowerState, Privilege, Suite,
    SuiteChoice,
};
use bmc_proto::ipmi::{Login, Secret, chassis::ChassisControl, server::Account};
use model::{Verb, permit::Refusal};

use crate::rig::{NOW, PASSWORD, Rig, client, node, permit, quick};

#[tokio::test]
async fn every_verb_reaches_the_board_by_both_suites() {
    for suite in [Suite::Seventeen, Suite::Three] {
        let rig = Rig::start().await;
        rig.board.watts.store(67, Ordering::SeqCst);
        let options = Options { suite: SuiteChoice::Only(suite), ..quick() };
        let bmc = client(rig.address, PASSWORD, options);

        assert_eq!(bmc.power_status().await.unwrap(), PowerState::Off);
        bmc.power_on().await.unwrap();
        assert_eq!(bmc.power_status().await.unwrap(), PowerState::On);
        bmc.reset(&node(), permit(Verb::Reset), NOW).await.unwrap().outcome.unwrap();
        bmc.power_cycle(&node(), permit(Verb::PowerCycle), NOW).await.unwrap().outcome.unwrap();
        bmc.soft_off().await.unwrap();
        bmc.power_on().await.unwrap();
        let off = bmc.power_off(&node(), permit(Verb::PowerOff), NOW).await.unwrap();
        off.outcome.unwrap();
        assert_eq!((off.audit.by.as_str(), off.audit.verb), ("anna", Verb::PowerOff));
        assert_eq!(rig.board.log(), ["on", "reset", "cycle", "soft", "on", "off"]);

        assert_eq!(bmc.device_id().await.unwrap().firmware(), "2.50");
        let guid = bmc.system_guid().await.unwrap().unwrap();
        assert_eq!(guid.to_string(), "39343536-3831-435a-3333-303039303033");
        let DcmiOutcome::Reading { watts: 67, confirmed: true, .. } =
            bmc.power_reading().await.unwrap()
        else {
            panic!("no reading")
        };
        assert_eq!(bmc.suite(), Some(suite.id()));
        assert_eq!(bmc.counters().sessions, 1, "one session serves all");
    }
}

#[tokio::test]
async fn a_one_shot_override_is_kept_read_back_and_cleared() {
    let rig = Rig::start().await;
    let bmc = rig.client();
    for mode in [FirmwareMode::Uefi, FirmwareMode::Legacy] {
        let back = bmc.set_boot_once(BootDevice::Pxe, mode).await.unwrap();
        assert_eq!((back.got, back.lost.as_slice()), (Some(back.sent), [].as_slice()));
        let held = rig.board.boot.lock().unwrap().unwrap();
        assert_eq!((held.device, held.mode), (BootDevice::Pxe, mode));
    }
    let cleared = bmc.clear_boot_override().await.unwrap();
    assert_eq!(cleared.lost, []);
    assert_eq!(*rig.board.boot.lock().unwrap(), None);
}

#[tokio::test]
async fn a_cycle_of_a_machine_that_is_off_switches_it_on() {
    let rig = Rig::start().await;
    let bmc = rig.client();
    bmc.power_cycle(&node(), permit(Verb::PowerCycle), NOW).await.unwrap().outcome.unwrap();
    assert_eq!(rig.board.log(), ["on"]);
    assert_eq!(rig.control.control_count(ChassisControl::Cycle), 0);
}

#[tokio::test]
async fn a_permit_for_another_verb_sends_nothing() {
    let rig = Rig::start().await;
    let bmc = rig.client();
    let refused = bmc.power_off(&node(), permit(Verb::Reset), NOW).await.unwrap_err();
    assert!(matches!(refused, Refusal::WrongUse { .. }), "{refused}");
    assert_eq!(rig.control.datagrams(), 0);
}

#[tokio::test]
async fn a_meter_that_is_absent_or_unknown_gives_no_number_and_is_not_asked_again() {
    let rig = Rig::start().await;
    assert_eq!(rig.client().power_reading().await.unwrap(), DcmiOutcome::Absent);

    let rig = Rig::start_with(|config| config.dcmi = false).await;
    let bmc = rig.client();
    assert_eq!(bmc.power_reading().await.unwrap(), DcmiOutcome::NotSupported);
    let before = rig.control.datagrams();
    assert_eq!(bmc.power_reading().await.unwrap(), DcmiOutcome::NotSupported);
    assert_eq!(rig.control.datagrams(), before);
    // The rest of that BMC is still of use.
    bmc.power_status().await.unwrap();
}

#[tokio::test]
async fn a_weaker_account_is_used_as_far_as_it_goes() {
    let account =
        |limit| Account { login: Login::new("admin", Secret::new(PASSWORD)).unwrap(), limit };
    let rig = Rig::start_with(|config| config.accounts = vec![account(Privilege::Operator)]).await;
    rig.client().power_on().await.unwrap();

    let rig = Rig::start_with(|config| config.accounts = vec![account(Privilege::User)]).await;
    let bmc = rig.client();
    bmc.power_status().await.unwrap();
    let error = bmc.power_on().await.unwrap_err();
    assert!(error.to_string().contains("privilege is too low"), "{error}");
    assert_eq!(rig.board.log(), [""; 0]);
}

#[tokio::test]
async fn callers_of_one_bmc_wait_for_their_turn() {
    let rig = Rig::start().await;
    let bmc = rig.client();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let bmc = bmc.clone();
        tasks.spawn(async move { bmc.power_status().await.map(PowerState::is_on) });
    }
    while let Some(answer) = tasks.join_next().await {
        assert!(matches!(answer.unwrap(), Ok::<_, BmcError>(false)));
    }
    assert_eq!(bmc.counters().sessions, 1);
}

#[tokio::test]
async fn an_idle_session_is_closed_on_the_bmc() {
    let rig = Rig::start_with(|config| config.max_sessions = 1).await;
    let idle = std::time::Duration::from_millis(100);
    let first = client(rig.address, PASSWORD, Options { idle, ..quick() });
    first.power_status().await.unwrap();
    // There is room for a second one only when the first has left; log-in waits for that by itself.
    rig.client().power_status().await.unwrap();
}

#[tokio::test]
async fn a_bmc_full_of_sessions_is_named_as_such() {
    let rig = Rig::start_with(|config| config.max_sessions = 1).await;
    let first = rig.client();
    first.power_status().await.unwrap();
    let error = rig.client().power_status().await.unwrap_err();
    assert!(matches!(error, BmcError::NoSessionFree { .. }) && error.is_transient(), "{error}");
    first.close().await;
    rig.client().power_status().await.unwrap();
}

#[tokio::test]
async fn a_session_given_up_for_lost_answers_leaves_its_place_on_the_bmc() {
    let rig = Rig::start_with(|config| config.max_sessions = 1).await;
    let deadline = std::time::Duration::from_millis(500);
    let bmc = client(rig.address, PASSWORD, Options { deadline, silent_tries: 100, ..quick() });
    for round in 1..=2 {
        bmc.power_status().await.unwrap_or_else(|error| panic!("round {round}: {error}"));
        rig.control.drop_answers(1_000);
        bmc.power_status().await.unwrap_err();
        rig.control.drop_answers(0);
    }
}

#[tokio::test]
async fn the_twin_refuses_to_listen_beyond_loopback() {
    let board = std::sync::Arc::new(crate::rig::TestBoard::default());
    let config = twin::bmc::IpmiConfig::new("admin", PASSWORD).unwrap();
    let address = "0.0.0.0:0".parse().unwrap();
    assert!(twin::bmc::IpmiServer::bind(address, board, config).await.is_err());
}
