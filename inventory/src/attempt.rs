//! Boot attempts and the tickets they run under.
//!
//! Kept are each node's last 20 and everything of the last 7 days before its newest; live tickets always.

use std::{str::FromStr, time::Duration};

use model::{NodeName, Ticket, UnixMillis};
use sqlx::AnyConnection;

use crate::{
    Store, StoreError,
    row::{Row, all},
};

/// Attempts of a node that are kept whatever their age.
const KEEP: i64 = 20;
/// Attempts this much younger than the newest are kept whatever their number.
const KEEP_SPAN: Duration = Duration::from_hours(7 * 24);

/// What became of an attempt's ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TicketState {
    /// Good inside its attempt.
    Live,
    /// An agent took it with its nonce.
    Claimed,
    /// Good for nothing any more.
    Spent,
}

/// One boot attempt of one node, keyed by both.
#[derive(Clone, PartialEq, Eq)]
pub struct AttemptRow {
    /// The node.
    pub node: NodeName,
    /// Its first moment, which names it.
    pub id: UnixMillis,
    /// When its kernel was fetched whole.
    pub kernel_whole: Option<UnixMillis>,
    /// The switch it serves; none for a settled node.
    pub switch_id: Option<String>,
    /// The ticket itself, since the same script must be rendered again after a restart.
    pub ticket: Option<Ticket>,
    /// What became of it.
    pub ticket_state: TicketState,
    /// The nonce of the agent that claimed it.
    pub nonce: Option<String>,
    /// The answer given in this attempt, as JSON; not read here.
    pub answer_json: Option<String>,
    /// How often the ticket was carried over from an attempt before.
    pub renewals: u32,
}

/// `answer_json` may hold the script with the ticket in it: never shown.
impl std::fmt::Debug for AttemptRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AttemptRow")
            .field("node", &self.node)
            .field("id", &self.id)
            .field("kernel_whole", &self.kernel_whole)
            .field("switch_id", &self.switch_id)
            .field("ticket", &self.ticket)
            .field("ticket_state", &self.ticket_state)
            .field("renewals", &self.renewals)
            .finish_non_exhaustive()
    }
}

impl TicketState {
    fn word(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Claimed => "claimed",
            Self::Spent => "spent",
        }
    }
}

impl FromStr for TicketState {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let states = [Self::Live, Self::Claimed, Self::Spent];
        states.into_iter().find(|state| state.word() == text).ok_or(())
    }
}

const TABLE: &str = "attempt";

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "select node, id_ms, kernel_whole_ms, switch_id, ticket, ticket_state, nonce,
                    answer_json, renewals from attempt ",
            $rest
        )
    };
}

/// The attempts of a node that are kept, newest first.
///
/// # Errors
/// [`StoreError`] when the database fails or holds what is not understood.
pub async fn of_node(store: &Store, node: &NodeName) -> Result<Vec<AttemptRow>, StoreError> {
    const SQL: &str = select!("where node = $1 order by id_ms desc");
    let rows = sqlx::query(SQL).bind(node.as_str()).fetch_all(&store.readers).await;
    all(TABLE, &rows.map_err(StoreError::query("read a node's boot attempts"))?, read)
}

/// The newest attempt of each node, by node.
///
/// # Errors
/// As [`of_node`].
pub async fn latest_per_node(store: &Store) -> Result<Vec<AttemptRow>, StoreError> {
    const SQL: &str = select!(
        "where not exists (select 1 from attempt as other
             where other.node = attempt.node and other.id_ms > attempt.id_ms)
         order by node"
    );
    let rows = sqlx::query(SQL).fetch_all(&store.readers).await;
    all(TABLE, &rows.map_err(StoreError::query("read the latest boot attempts"))?, read)
}

/// All attempts whose ticket is not spent, by node, oldest first.
///
/// # Errors
/// As [`of_node`].
pub async fn unspent(store: &Store) -> Result<Vec<AttemptRow>, StoreError> {
    const SQL: &str = select!("where ticket_state <> 'spent' order by node, id_ms");
    let rows = sqlx::query(SQL).fetch_all(&store.readers).await;
    all(TABLE, &rows.map_err(StoreError::query("read the attempts with live tickets"))?, read)
}

pub(crate) async fn upsert(db: &mut AnyConnection, row: &AttemptRow) -> Result<(), StoreError> {
    const SQL: &str = "insert into attempt (node, id_ms, kernel_whole_ms, switch_id, ticket,
            ticket_state, nonce, answer_json, renewals)
        values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
        on conflict (node, id_ms) do update set kernel_whole_ms = excluded.kernel_whole_ms,
            switch_id = excluded.switch_id, ticket = excluded.ticket,
            ticket_state = excluded.ticket_state, nonce = excluded.nonce,
            answer_json = excluded.answer_json, renewals = excluded.renewals";
    let query = sqlx::query(SQL)
        .bind(row.node.as_str())
        .bind(row.id.0)
        .bind(row.kernel_whole.map(|at| at.0))
        .bind(row.switch_id.as_deref())
        .bind(row.ticket.as_ref().map(Ticket::reveal))
        .bind(row.ticket_state.word())
        .bind(row.nonce.as_deref())
        .bind(row.answer_json.as_deref())
        .bind(i64::from(row.renewals));
    query.execute(&mut *db).await.map_err(StoreError::query("write a boot attempt"))?;
    prune(db, &row.node, row.id).await
}

/// Deletes what is neither among the last 20 nor within 7 days of `newest`, unless its ticket lives.
async fn prune(
    db: &mut AnyConnection,
    node: &NodeName,
    newest: UnixMillis,
) -> Result<(), StoreError> {
    const SQL: &str =
        "delete from attempt where node = $1 and id_ms < $2 and ticket_state <> 'live'
        and id_ms < (select id_ms from attempt where node = $1
                     order by id_ms desc limit 1 offset $3)";
    let span = i64::try_from(KEEP_SPAN.as_millis()).unwrap_or(i64::MAX);
    let query =
        sqlx::query(SQL).bind(node.as_str()).bind(newest.0.saturating_sub(span)).bind(KEEP - 1);
    query.execute(db).await.map_err(StoreError::query("delete old boot attempts"))?;
    Ok(())
}

fn read(row: &Row<'_>) -> Result<AttemptRow, StoreError> {
    // A ticket never goes into an error message.
    let ticket = row.opt_text("ticket")?.map(|text| text.parse::<Ticket>());
    Ok(AttemptRow {
        node: row.parsed("node")?,
        id: row.millis("id_ms")?,
        kernel_whole: row.opt_millis("kernel_whole_ms")?,
        switch_id: row.opt_text("switch_id")?,
        ticket: ticket.transpose().map_err(|_| row.corrupt("ticket", "(masked)"))?,
        ticket_state: row.parsed("ticket_state")?,
        nonce: row.opt_text("nonce")?,
        answer_json: row.opt_text("answer_json")?,
        renewals: row.number("renewals")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Record,
        switch::tests::switch,
        testing::{Book, node},
    };

    fn attempt(of: &str, id: i64, ticket_state: TicketState) -> AttemptRow {
        AttemptRow {
            node: node(of),
            id: UnixMillis(id),
            kernel_whole: None,
            switch_id: None,
            ticket: Some(Ticket::from_random([7; 16])),
            ticket_state,
            nonce: None,
            answer_json: None,
            renewals: 0,
        }
    }

    #[tokio::test]
    async fn an_attempt_reads_back_as_it_was_last_written() {
        let book = Book::open().await;
        let first = attempt("bld-003", 100, TicketState::Live);
        let claimed = AttemptRow {
            kernel_whole: Some(UnixMillis(110)),
            switch_id: Some("s1".to_owned()),
            ticket_state: TicketState::Claimed,
            nonce: Some("00ff".to_owned()),
            answer_json: Some("{}".to_owned()),
            renewals: 2,
            ..first.clone()
        };
        book.write(vec![
            Record::Switch(switch("s1", "bld-003", true, 1)),
            Record::Attempt(first),
            Record::Attempt(claimed.clone()),
        ])
        .await;
        assert_eq!(of_node(&book.store, &node("bld-003")).await.unwrap(), [claimed]);
    }

    #[tokio::test]
    async fn each_node_shows_its_latest_attempt_and_its_unspent_ones() {
        let book = Book::open().await;
        let rows = [
            attempt("bld-003", 100, TicketState::Live),
            attempt("bld-003", 200, TicketState::Spent),
            attempt("bld-004", 50, TicketState::Claimed),
        ];
        book.write(rows.iter().cloned().map(Record::Attempt).collect()).await;
        let [old, new, other] = rows;
        assert_eq!(latest_per_node(&book.store).await.unwrap(), [new, other.clone()]);
        assert_eq!(unspent(&book.store).await.unwrap(), [old, other]);
    }

    #[tokio::test]
    async fn old_attempts_go_but_the_last_twenty_the_last_week_and_live_tickets_stay() {
        const DAY: i64 = 86_400_000;
        let book = Book::open().await;
        let mut rows = vec![attempt("bld-003", 1, TicketState::Live)];
        rows.extend((2..40).map(|id| attempt("bld-003", id, TicketState::Spent)));
        rows.extend((0..5).map(|id| attempt("bld-003", 10 * DAY + id, TicketState::Spent)));
        book.write(rows.into_iter().map(Record::Attempt).collect()).await;
        let kept = of_node(&book.store, &node("bld-003")).await.unwrap();
        assert_eq!(kept.len(), 21, "twenty and the live one");
        assert_eq!(kept.last().unwrap().id, UnixMillis(1));

        let busy = (0..30).map(|id| attempt("bld-004", 10 * DAY + id, TicketState::Spent));
        book.write(busy.map(Record::Attempt).collect()).await;
        assert_eq!(of_node(&book.store, &node("bld-004")).await.unwrap().len(), 30);
    }

    #[test]
    fn a_ticket_does_not_show_in_debug_text() {
        let mut row = attempt("bld-003", 1, TicketState::Live);
        row.answer_json = row.ticket.as_ref().map(|ticket| ticket.reveal().to_owned());
        assert!(!format!("{row:?}").contains("07070707"), "{row:?}");
    }
}
