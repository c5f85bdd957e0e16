//! Our client against the twin's BMC in bad weather.

use std::{sync::atomic::Ordering, time::Duration};

use bmc::{BmcError, BootDevice, FirmwareMode, LostBit, Options, PowerState, Suite};
use bmc_proto::ipmi::{chassis::ChassisControl, rakp::RakpStatus};
use model::Verb;
use tokio::time::{Instant, timeout_at};
use twin::bmc::SuiteRefusal;

use crate::rig::{NOW, PASSWORD, Rig, client, node, permit, quick, texts};

#[tokio::test]
async fn a_suite_that_is_listed_but_refused_is_left_once_and_remembered() {
    let refusals = [0x04, 0x05, 0x10, 0x11, 0x12, 0x0a]
        .map(|number| SuiteRefusal::Status(RakpStatus::from_number(number)));
    for refusal in refusals.into_iter().chain([SuiteRefusal::AnswersWith(Suite::Three)]) {
        let rig = Rig::start().await;
        rig.control.refuse_suite(Suite::Seventeen, refusal);
        let bmc = rig.client();
        bmc.power_status().await.unwrap_or_else(|error| panic!("{refusal:?}: {error}"));
        assert_eq!(bmc.suite(), Some(3), "{refusal:?}");
        let before = rig.control.open_requests();
        bmc.close().await;
        bmc.power_status().await.unwrap();
        assert_eq!(rig.control.open_requests(), before + 1, "{refusal:?}: 3 at once");
    }
}

#[tokio::test]
async fn only_the_suites_a_bmc_lists_are_tried() {
    let rig = Rig::start_with(|config| config.suites = vec![Suite::Three]).await;
    let bmc = rig.client();
    bmc.power_status().await.unwrap();
    assert_eq!((bmc.suite(), rig.control.open_requests()), (Some(3), 1));
}

#[tokio::test]
async fn a_wrong_password_is_tried_once_and_stands_in_no_text() {
    let rig = Rig::start().await;
    let wrong = "Other-S3cret!#%&7";
    let bmc = client(rig.address, wrong, quick());
    for _ in 0..3 {
        let error = bmc.power_status().await.unwrap_err();
        assert!(matches!(error, BmcError::LoginRefused { .. }), "{error}");
        assert!(error.to_string().contains("admin"), "{error}");
        let text = texts(&error);
        assert!(!text.contains(wrong) && !text.contains(PASSWORD), "{text}");
    }
    assert_eq!(rig.control.open_requests(), 1, "no second try, no second suite");
}

#[tokio::test]
async fn lost_requests_and_lost_answers_are_made_good() {
    let rig = Rig::start().await;
    let bmc = rig.client();
    for lost in 1..=4 {
        rig.control.drop_requests(lost);
        bmc.power_on().await.unwrap_or_else(|error| panic!("{lost} requests: {error}"));
        rig.control.drop_answers(lost);
        assert!(bmc.power_status().await.unwrap().is_on());
        bmc.close().await;
    }
    assert!(bmc.counters().retransmits >= 8, "{:?}", bmc.counters());
}

#[tokio::test]
async fn a_cycle_whose_answer_is_lost_is_not_sent_again() {
    for (control, verb) in
        [(ChassisControl::Cycle, Verb::PowerCycle), (ChassisControl::Reset, Verb::Reset)]
    {
        let rig = Rig::start().await;
        rig.board.on.store(true, Ordering::SeqCst);
        let bmc = rig.client();
        bmc.power_status().await.unwrap();
        // The status read before is answered, the verb is carried out, its answer is lost.
        rig.control.drop_answers_of(control, 1);
        let carried = match verb {
            Verb::Reset => bmc.reset(&node(), permit(verb), NOW).await,
            _ => bmc.power_cycle(&node(), permit(verb), NOW).await,
        };
        let carried = carried.unwrap();
        assert_eq!(carried.audit.verb, verb, "audited all the same");
        let error = carried.outcome.unwrap_err();
        let BmcError::OutcomeUnknown { power: Some(PowerState::On), .. } = error else {
            panic!("{error}")
        };
        assert_eq!(rig.control.control_count(control), 1);
        assert!(error.to_string().contains("look before doing it again"), "{error}");
    }
}

#[tokio::test]
async fn a_soft_shutdown_is_not_sent_twice_either() {
    let rig = Rig::start().await;
    rig.board.on.store(true, Ordering::SeqCst);
    rig.control.drop_answers_of(ChassisControl::SoftOff, 1);
    let error = rig.client().soft_off().await.unwrap_err();
    assert!(matches!(error, BmcError::OutcomeUnknown { power: Some(PowerState::Off), .. }));
    assert_eq!(rig.control.control_count(ChassisControl::SoftOff), 1);
}

#[tokio::test]
async fn doubled_and_late_answers_never_give_an_old_state() {
    let rig = Rig::start().await;
    let bmc = rig.client();
    rig.control.answer_twice(true);
    let mut wrong = 0;
    for round in 0..200 {
        if round == 180 {
            // Later than the first retransmission: every answer comes after its repetition was sent.
            rig.control.answer_late(Duration::from_millis(70));
        }
        let want = if round % 2 == 0 { PowerState::On } else { PowerState::Off };
        rig.board.on.store(want.is_on(), Ordering::SeqCst);
        wrong += u32::from(bmc.power_status().await.unwrap() != want);
    }
    assert_eq!(wrong, 0);
    assert!(bmc.counters().strays > 100, "{:?}", bmc.counters());
}

#[tokio::test]
async fn a_bmc_that_forgot_its_sessions_is_logged_in_to_again() {
    let rig = Rig::start().await;
    let bmc = rig.client();
    bmc.power_status().await.unwrap();
    rig.control.forget_sessions();
    bmc.power_on().await.unwrap();
    assert_eq!((bmc.counters().sessions, rig.board.log()), (2, vec!["on"]));
}

#[tokio::test]
async fn a_silent_bmc_ends_by_its_deadline_and_delays_nobody_else() {
    let (silent, well) = (Rig::start().await, Rig::start().await);
    silent.control.silent(true);
    let dead = silent.client();
    let waits = tokio::spawn({
        let dead = dead.clone();
        async move { dead.power_status().await.map(drop) }
    });
    let queued = tokio::spawn(async move { dead.power_on().await });
    let bmc = well.client();
    bmc.power_status().await.unwrap();
    assert!(!waits.is_finished() && !queued.is_finished(), "the well one waited for nobody");
    // One deadline for both: the second in the queue does not get one of its own.
    let end = Instant::now() + quick().deadline * 3 / 2;
    for answer in [waits, queued] {
        let ended = timeout_at(end, answer).await.expect("the deadline holds");
        let error = ended.unwrap().unwrap_err();
        assert!(error.is_transient(), "{error}");
    }
    silent.control.silent(false);
    silent.client().power_status().await.unwrap();
}

#[tokio::test]
async fn a_closed_port_is_named_and_is_no_final_answer() {
    let address = crate::foreign::free_udp_address();
    let options = Options { deadline: Duration::from_millis(200), ..quick() };
    let error = client(address, PASSWORD, options).power_status().await.unwrap_err();
    assert!(matches!(error, BmcError::PortClosed { .. }) && error.is_transient(), "{error}");
}

#[tokio::test]
async fn a_busy_bmc_is_asked_again_and_nothing_is_done_twice() {
    let rig = Rig::start().await;
    rig.board.on.store(true, Ordering::SeqCst);
    let bmc = rig.client();
    bmc.power_status().await.unwrap();
    rig.control.busy(2);
    bmc.reset(&node(), permit(Verb::Reset), NOW).await.unwrap().outcome.unwrap();
    assert_eq!(rig.board.log(), ["reset"]);
}

#[tokio::test]
async fn boot_flags_that_were_not_kept_and_short_device_ids_are_seen() {
    let rig = Rig::start().await;
    let bmc = rig.client();
    rig.control.forget_boot_override(true);
    let back = bmc.set_boot_once(BootDevice::Pxe, FirmwareMode::Uefi).await.unwrap();
    assert!(back.lost.contains(&LostBit::Valid) && back.lost.contains(&LostBit::Uefi), "{back:?}");
    rig.control.short_device_id(true);
    assert!(bmc.device_id().await.unwrap().auxiliary.is_empty());
    rig.control.lie_about_power(Some(true));
    assert!(bmc.power_status().await.unwrap().is_on());
}
