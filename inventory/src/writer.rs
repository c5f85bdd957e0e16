//! The one task that writes: takes everything queued, commits it in one transaction, answers all.
//!
//! A single commit costs a sync of the disk; many submissions share one (group commit). It never retries and
//! never drops: whoever submitted hears what became of it.

use std::collections::BTreeMap;

use sqlx::{AnyConnection, AnyPool, Connection as _};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
};

use crate::{
    Record, Store, StoreError, dialect::Dialect, ids::Ids, record::apply, sighting, switch,
};

/// Submissions that may wait. When it is full, `submit` waits for room: back-pressure, nothing is lost.
const QUEUE: usize = 1_024;
/// Sightings of one node written between two prunings of that node.
const PRUNE_EVERY: u32 = 500;

type Answer = Result<(), StoreError>;

/// Hands records to the writer task. Clones feed the same task.
#[derive(Debug, Clone)]
pub struct Writer {
    queue: mpsc::Sender<Submission>,
}

#[derive(Debug)]
struct Submission {
    records: Vec<Record>,
    reply: oneshot::Sender<Answer>,
}

impl Writer {
    /// Starts the writer of `store`, once a store. It joins `tasks` and ends by itself, with everything queued
    /// written, when the last `Writer` is gone.
    ///
    /// # Errors
    /// When the last keys cannot be read.
    pub async fn start(store: &Store, tasks: &mut JoinSet<()>) -> Result<Self, StoreError> {
        let last = switch::last_id(store).await?.max(sighting::last_id(store).await?);
        let last = last.max(crate::audit::last_id(store).await?);
        let (queue, submissions) = mpsc::channel(QUEUE);
        let task = WriterTask {
            pool: store.writer.clone(),
            dialect: store.dialect,
            ids: Ids::after(last.as_deref()),
            unpruned: BTreeMap::new(),
        };
        tasks.spawn(task.run(submissions));
        Ok(Self { queue })
    }

    /// Writes `records` together and waits until they are on disk. Dropping the future does not take them
    /// back once they are queued.
    ///
    /// # Errors
    /// [`StoreError`] when nothing of it was written. A bad record fails its own submission; a full or failing
    /// disk fails all that were to share the commit.
    pub async fn submit(&self, records: Vec<Record>) -> Result<(), StoreError> {
        let (reply, answer) = oneshot::channel();
        let sent = self.queue.send(Submission { records, reply }).await;
        sent.map_err(|_closed| StoreError::Stopped)?;
        answer.await.map_err(|_closed| StoreError::Stopped)?
    }
}

struct WriterTask {
    pool: AnyPool,
    dialect: Dialect,
    ids: Ids,
    /// Sightings written since a node was last pruned, by node as stored.
    unpruned: BTreeMap<String, u32>,
}

impl WriterTask {
    async fn run(mut self, mut submissions: mpsc::Receiver<Submission>) {
        let mut batch = Vec::new();
        while submissions.recv_many(&mut batch, QUEUE).await > 0 {
            let (records, replies): (Vec<_>, Vec<_>) =
                batch.drain(..).map(|job| (job.records, job.reply)).unzip();
            let answers = match self.commit(&records).await {
                Ok(answers) => answers,
                Err(error) => vec![Err(error); records.len()],
            };
            for (reply, answer) in replies.into_iter().zip(answers) {
                // Whoever asked may have gone; the records are written all the same.
                let _gone = reply.send(answer);
            }
        }
    }

    /// One transaction. Each submission is a savepoint in it: a bad one is undone alone.
    async fn commit(&mut self, batch: &[Vec<Record>]) -> Result<Vec<Answer>, StoreError> {
        let acquired = self.pool.acquire().await;
        let mut db = acquired.map_err(StoreError::query("reach the database"))?;
        let outcome = self.commit_on(&mut db, batch).await;
        if outcome.is_err() {
            // SQLite takes a whole transaction back by itself when the disk is full or fails, and sqlx then counts
            // one that is no more: this connection could never begin another.
            let closed = db.close().await;
            tracing::warn!(?closed, "the writing connection was given up after a failed commit");
        }
        outcome
    }

    async fn commit_on(
        &mut self,
        db: &mut AnyConnection,
        batch: &[Vec<Record>],
    ) -> Result<Vec<Answer>, StoreError> {
        let begin = db.begin_with(self.dialect.begin_write()).await;
        let mut transaction = begin.map_err(StoreError::query("begin a transaction"))?;
        let mut answers = Vec::with_capacity(batch.len());
        for records in batch {
            answers.push(self.write_together(&mut transaction, records).await?);
        }
        self.prune(&mut transaction).await?;
        transaction.commit().await.map_err(StoreError::query("commit a transaction"))?;
        Ok(answers)
    }

    /// The inner result is this submission's own; the outer one ends the whole transaction.
    async fn write_together(
        &mut self,
        db: &mut AnyConnection,
        records: &[Record],
    ) -> Result<Answer, StoreError> {
        let mut savepoint = db.begin().await.map_err(StoreError::query("set a savepoint"))?;
        for record in records {
            if let Err(error) = apply(&mut savepoint, &mut self.ids, record).await {
                savepoint.rollback().await.map_err(StoreError::query("undo a submission"))?;
                return Ok(Err(error));
            }
        }
        savepoint.commit().await.map_err(StoreError::query("release a savepoint"))?;
        for record in records {
            if let Record::Sighting(seen) = record {
                *self.unpruned.entry(sighting::node_key(seen).to_owned()).or_default() += 1;
            }
        }
        Ok(Ok(()))
    }

    async fn prune(&mut self, db: &mut AnyConnection) -> Result<(), StoreError> {
        let due: Vec<String> = self
            .unpruned
            .iter()
            .filter(|(_node, count)| **count >= PRUNE_EVERY)
            .map(|(node, _count)| node.clone())
            .collect();
        for node in due {
            sighting::prune(db, &node).await?;
            self.unpruned.remove(&node);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model::UnixMillis;

    use super::*;
    use crate::{
        UserRow, account,
        testing::{Book, node},
    };

    fn user(name: &str) -> Record {
        Record::User(UserRow { name: name.to_owned(), phc: "$argon2id$".to_owned() })
    }

    #[tokio::test]
    async fn what_was_answered_is_there_after_the_store_was_opened_again() {
        let mut book = Book::open().await;
        book.write(vec![user("anna"), user("bert")]).await;
        drop(book.writer);
        let ended = tokio::time::timeout(Duration::from_secs(10), book.tasks.join_next()).await;
        ended.expect("the writer ends when its last handle is gone").unwrap().unwrap();
        book.store.close().await;
        let again = Store::open(&book.dir.file("v.db")).await.unwrap();
        assert_eq!(account::users(&again).await.unwrap().len(), 2);
    }

    #[tokio::test]
    async fn records_of_one_submit_are_written_together_or_not_at_all() {
        let book = Book::open().await;
        let orphan = crate::Transition {
            switch_id: "no such switch".to_owned(),
            node: node("bld-003"),
            at: UnixMillis(1),
            phase: "booting".to_owned(),
            reason: "switched on".to_owned(),
        };
        let bad = book.writer.submit(vec![user("anna"), Record::Transition(orphan)]);
        let good = book.writer.submit(vec![user("bert")]);
        let (bad, good) = tokio::join!(bad, good);
        assert!(matches!(bad, Err(StoreError::Query { .. })), "{bad:?}");
        good.unwrap();
        let users = account::users(&book.store).await.unwrap();
        assert_eq!(users.iter().map(|user| user.name.as_str()).collect::<Vec<_>>(), ["bert"]);
    }

    #[tokio::test]
    async fn more_submitters_than_the_queue_holds_all_get_their_answer() {
        let book = Book::open().await;
        let mut submitters = JoinSet::new();
        for number in 0..QUEUE * 2 {
            let writer = book.writer.clone();
            submitters.spawn(async move { writer.submit(vec![user(&format!("u{number}"))]).await });
        }
        while let Some(answer) = submitters.join_next().await {
            answer.unwrap().unwrap();
        }
        assert_eq!(account::users(&book.store).await.unwrap().len(), QUEUE * 2);
    }

    #[tokio::test]
    async fn a_full_disk_is_answered_and_writing_goes_on_when_there_is_room_again() {
        let book = Book::open().await;
        book.write(vec![user("anna")]).await;
        let limit = |pages: &'static str| sqlx::query(pages).execute(&book.store.writer);
        // SQLite never goes below the present size: not one page more.
        limit("pragma max_page_count = 1").await.unwrap();
        let big = Record::User(UserRow { name: "big".to_owned(), phc: "x".repeat(1 << 20) });
        let (full, small) = tokio::join!(
            book.writer.submit(vec![big.clone()]),
            book.writer.submit(vec![user("b")])
        );
        assert!(matches!(full, Err(StoreError::Query { .. })), "{full:?}");
        // Whether its neighbour fell with it or not: what was answered is what is there.
        let users = account::users(&book.store).await.unwrap();
        assert_eq!(users.iter().any(|user| user.name == "b"), small.is_ok(), "{small:?}");

        limit("pragma max_page_count = 100000").await.unwrap();
        book.write(vec![big]).await;
        book.write(vec![user("carl")]).await;
        let users = account::users(&book.store).await.unwrap();
        assert!(users.iter().any(|user| user.name == "carl"));
        assert!(users.iter().any(|user| user.name == "big"));
    }

    #[tokio::test]
    async fn a_writer_that_has_ended_says_so() {
        let mut book = Book::open().await;
        book.tasks.shutdown().await;
        let answer = book.writer.submit(vec![user("anna")]).await;
        assert!(matches!(answer, Err(StoreError::Stopped)), "{answer:?}");
    }
}
