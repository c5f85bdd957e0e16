//! A permit is spent once.

async fn twice(
    bmc: bmc::Bmc,
    node: model::NodeName,
    permit: model::Permit,
    now: model::UnixMillis,
) {
    let first = bmc.reset(&node, permit, now).await;
    let second = bmc.reset(&node, permit, now).await;
    drop((first, second));
}

fn main() {}
