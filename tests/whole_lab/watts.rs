//! The watts of a node: a value with its margin, or the reason there is none. Never zero.

use twin::board::Board as _;

use crate::rig::{Rig, Setup};

#[tokio::test]
async fn watts_are_shown_with_their_margin_or_with_the_reason_they_are_absent() {
    let rig = Rig::ready(Setup { bays: 3, no_meter: Some(2), ..Setup::default() }).await;
    for bay in [1, 2] {
        rig.blade(bay).blade.power_on();
    }
    let metered = rig.node_is("bld-001", "metered", |node| node.watts.value.is_some()).await.watts;
    let watts = metered.value.unwrap();
    assert!((55.0..125.0).contains(&watts), "{metered:?}");
    assert!((metered.margin.unwrap() - 0.05 * watts).abs() < 0.01, "{metered:?}");
    assert_eq!(metered.text, format!("{watts:.0} W ±5 % (DCMI, blade input)"));
    assert!(metered.from_ms < metered.to_ms && metered.absent.is_none(), "{metered:?}");

    let node = rig.node_is("bld-002", "on", |node| node.power == api::PowerState::On).await;
    let absent = node.watts;
    assert_eq!((absent.value, absent.text.as_str()), (None, "–"));
    assert_eq!(absent.absent.as_deref(), Some("the BMC has no power meter"));

    let off = rig.node("bld-003").await.node.watts;
    assert_eq!((off.value, off.text.as_str()), (None, "–"));
    assert!(off.absent.is_some(), "{off:?}");

    // Silence: the last value may stand for a few periods, then it is no more.
    rig.blade(1).control.silent(true);
    let silent = rig.node_is("bld-001", "silent", |node| node.watts.value.is_none()).await.watts;
    assert_eq!(silent.text, "–");
    let why = "the BMC does not answer";
    let is_silent = |node: &api::NodeView| {
        node.watts.absent.as_deref() == Some(why) && node.power == api::PowerState::Unknown
    };
    rig.node_is("bld-001", "silent for meter and power", is_silent).await;
    let hour = rig.node("bld-001").await.power;
    assert!(hour.iter().any(|reading| reading.value.is_some()), "{hour:?}");
    let gap = hour.last().unwrap();
    assert_eq!((gap.value, gap.absent.as_deref()), (None, Some(why)));
}
