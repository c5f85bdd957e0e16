//! `volund demo`: the whole program against the twin of one enclosure, on loopback, without rights.
//!
//! Everything is real but the metal: the blades speak IPMI, DHCP, TFTP and HTTP through sockets, and volund is
//! started from a configuration this module writes, exactly as `volund serve` would start it.

mod files;

use std::{
    io::Write,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use tokio_util::sync::CancellationToken;
use twin::{
    Lab, LabSpec,
    blade::{BootServices, Pace},
    qemu::Password,
};

use crate::{
    config,
    server::{Server, StateLock},
};

/// A real blade takes two minutes for its self test; a person who watches should see it, not wait for it.
const PACE: Pace = Pace {
    post: Duration::from_millis(1_500),
    post_spread: Duration::from_millis(1_000),
    install: Duration::from_secs(4),
    soft_off: Duration::from_millis(800),
    scale: 1.0,
};

/// User of the demo's page.
const USER: &str = "operator";

/// Arguments of `volund demo`.
#[derive(Debug, Clone, clap::Args)]
pub struct DemoArgs {
    /// Keep the state in this folder; without it a temporary one is made and removed at the end
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Address of page and API [default: 127.0.0.1:8080, or a free port when it is taken]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<SocketAddr>,
    /// Number of blades, 1 to 16
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u8).range(1..=16))]
    pub bays: u8,
    /// Same seed, same lab
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// What a person needs to know of a running demo.
#[derive(Debug, Clone)]
pub struct Access {
    /// Address of the page.
    pub url: String,
    /// User.
    pub user: String,
    /// Password.
    pub password: String,
    /// The file with URL, token and BMC login for scripts.
    pub env_file: PathBuf,
}

/// Where the demo keeps its files; a temporary folder goes when this is dropped.
struct State {
    dir: PathBuf,
    temporary: bool,
    _lock: StateLock,
}

/// Runs the demo until Ctrl-C or SIGTERM.
///
/// # Errors
/// What could not be started, and what to do about it.
pub async fn run(args: DemoArgs) -> anyhow::Result<()> {
    let begun = Instant::now();
    let stop = crate::server::stop_on_signals()?;
    let (demo, access) = Demo::start(&args, stop).await?;
    print_welcome(&access, begun.elapsed().as_millis());
    demo.run().await
}

/// A running demo.
pub struct Demo {
    server: Server,
    lab: Lab,
    _state: State,
}

impl Demo {
    /// Starts twin and server.
    ///
    /// # Errors
    /// What could not be started.
    pub async fn start(args: &DemoArgs, stop: CancellationToken) -> anyhow::Result<(Self, Access)> {
        let state = State::open(args.state.as_deref())?;
        let (password, bmc_password) = (secret(6)?, secret(8)?);
        let spec = LabSpec {
            bays: args.bays,
            seed: args.seed,
            bmc_password: Password(bmc_password.clone()),
            pace: PACE,
            ..LabSpec::default()
        };
        let lab = Lab::bind(&spec).await.context("could not start the twin")?;
        let listen = free_listen(args.listen)?;
        let hash =
            web::auth::Auth::hash_password(&password).context("could not hash the password")?;
        let written = files::Files { dir: &state.dir, lab: &lab, spec: &spec, listen, user: USER };
        written.write(&hash, &bmc_password).context("could not write the demo's configuration")?;
        let config = config::load(&state.dir.join("config"))
            .context("the demo's own configuration is wrong")?;
        let server = Server::start(config, stop).await?;
        let bound = server.boot.values().next();
        let Some((dhcp, tftp)) = bound.and_then(|bound| Some((bound.dhcp?, bound.tftp))) else {
            bail!("the demo has no boot network");
        };
        lab.connect(BootServices { dhcp: dhcp.into(), tftp_port: tftp.port() });
        let token = server.mint_token("demo").await?;
        let url = format!("http://{}", server.operator);
        let env_file = state.dir.join("demo.env");
        let env = files::env_text(&url, &token, &spec.bmc_user, &bmc_password);
        files::write_secret(&env_file, &env)?;
        let access = Access { url, user: USER.to_owned(), password, env_file };
        Ok((Self { server, lab, _state: state }, access))
    }

    /// Runs until the stop is asked for.
    ///
    /// # Errors
    /// When a part of the server ended by itself.
    pub async fn run(self) -> anyhow::Result<()> {
        let Self { server, lab, _state } = self;
        let outcome = server.run().await;
        lab.shutdown().await;
        outcome
    }
}

impl State {
    fn open(dir: Option<&Path>) -> anyhow::Result<Self> {
        let (dir, temporary) = match dir {
            Some(dir) => (dir.to_owned(), false),
            None => (std::env::temp_dir().join(format!("volund-demo-{}", secret(6)?)), true),
        };
        std::fs::create_dir_all(&dir)
            .with_context(|| format!("could not make the state folder {}", dir.display()))?;
        let dir = dir
            .canonicalize()
            .with_context(|| format!("could not find the state folder {}", dir.display()))?;
        // Before anything is written: a second demo would take the first one's files away from it.
        let lock = StateLock::take(&dir)?;
        Ok(Self { dir, temporary, _lock: lock })
    }
}

impl Drop for State {
    fn drop(&mut self) {
        if self.temporary
            && let Err(error) = std::fs::remove_dir_all(&self.dir)
        {
            tracing::warn!(dir = %self.dir.display(), %error, "could not remove the demo's folder");
        }
    }
}

/// The address asked for, or 8080, or a free port when somebody else has 8080.
fn free_listen(asked: Option<SocketAddr>) -> anyhow::Result<SocketAddr> {
    if let Some(asked) = asked {
        if !asked.ip().is_loopback() {
            bail!("the demo answers on loopback only; {asked} is not: use 127.0.0.1:PORT");
        }
        return Ok(asked);
    }
    let usual = SocketAddr::from(([127, 0, 0, 1], 8080));
    let free = std::net::TcpListener::bind(usual).is_ok();
    Ok(if free { usual } else { SocketAddr::from(([127, 0, 0, 1], 0)) })
}

/// `bytes` random bytes as hex: twice as many digits.
fn secret(bytes: usize) -> anyhow::Result<String> {
    let mut chance = vec![0; bytes];
    getrandom::fill(&mut chance).context("the system gives no random bytes")?;
    Ok(model::hex::encode(&chance))
}

/// What a person is told. Nobody reads it when the pipe is closed; the demo goes on.
fn print_welcome(access: &Access, millis: u128) {
    let Access { url, user, password, env_file } = access;
    let mut out = std::io::stdout();
    let _read = write!(
        out,
        "\n  volund demo: a c7000 with its blades, modelled, on loopback (ready in {millis} ms)\n\n\
         \x20 page      {url}\n\
         \x20 log in    {user} / {password}\n\n\
         \x20 Try: pick a blade, press \"Switch…\" beside inspect, confirm, and watch it boot.\n\
         \x20 Or from a second shell:\n\n\
         \x20   set -a; . {env}; set +a\n\
         \x20   volund nodes\n\
         \x20   volund switch bld-003 inspect --wait\n\
         \x20   volund node bld-003\n\n\
         \x20 Ctrl-C ends everything.\n\n",
        env = env_file.display(),
    )
    .and_then(|()| out.flush());
}
