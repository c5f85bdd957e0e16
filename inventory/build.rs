//! Tells cargo that the migrations are part of this crate (`sqlx::migrate!` sees no new file by itself).

#[allow(clippy::print_stdout, reason = "this is how a build script speaks to cargo")]
fn main() {
    println!("cargo:rerun-if-changed=../migrations");
}
