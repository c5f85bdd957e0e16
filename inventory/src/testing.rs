//! What the tests of this crate share: a folder that goes away, an opened store with its writer.

use std::{
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
};

use tokio::task::JoinSet;

use crate::{Record, Store, Writer};

/// A folder of one test, removed with it.
pub(crate) struct TempDir(pub(crate) PathBuf);

impl TempDir {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("volund-inventory-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _removed = std::fs::remove_dir_all(&self.0);
    }
}

/// A migrated database in a folder of its own, with a running writer.
pub(crate) struct Book {
    pub(crate) store: Store,
    pub(crate) writer: Writer,
    pub(crate) dir: TempDir,
    pub(crate) tasks: JoinSet<()>,
}

impl Book {
    pub(crate) async fn open() -> Self {
        let dir = TempDir::new();
        let store = Store::open(&dir.file("v.db")).await.unwrap();
        let mut tasks = JoinSet::new();
        let writer = Writer::start(&store, &mut tasks).await.unwrap();
        Self { store, writer, dir, tasks }
    }

    pub(crate) async fn write(&self, records: Vec<Record>) {
        self.writer.submit(records).await.unwrap();
    }
}

pub(crate) fn node(name: &str) -> model::NodeName {
    name.parse().unwrap()
}

pub(crate) fn profile(name: &str) -> model::ProfileName {
    name.parse().unwrap()
}
