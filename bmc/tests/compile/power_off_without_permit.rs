//! Hard off takes a permit by value.

async fn off(bmc: bmc::Bmc) {
    bmc.power_off().await;
}

fn main() {}
