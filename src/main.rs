//! The program `volund`.

fn main() -> std::process::ExitCode {
    volund::cli::main()
}
