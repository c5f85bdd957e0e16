//! Leases as pages and scripts see them: the last state of each address. The boot services own the leases and keep
//! them in a log of their own; nothing is decided by this copy.

use model::{Lease, MacAddr, lease::LeaseState};
use sqlx::AnyConnection;

use crate::{Store, StoreError, row::all};

const TABLE: &str = "lease";

/// The last state of each address, at most `limit` of those that hold longest: of one network, of one hardware
/// address, or of all.
///
/// # Errors
/// [`StoreError`] when the database fails or holds what is not understood.
pub async fn list(
    store: &Store,
    network: Option<&str>,
    mac: Option<MacAddr>,
    limit: u32,
) -> Result<Vec<Lease>, StoreError> {
    const SQL: &str =
        "select network, address, mac, state, at_ms, until_ms, host_name, location from lease
        where (network = $1 or $1 = '') and (mac = $2 or $2 = '')
        order by until_ms desc, network, address limit $3";
    let query = sqlx::query(SQL)
        .bind(network.unwrap_or_default())
        .bind(mac.map(|mac| mac.to_string()).unwrap_or_default())
        .bind(i64::from(limit));
    let rows = query.fetch_all(&store.readers).await;
    all(TABLE, &rows.map_err(StoreError::query("read the leases"))?, |row| {
        let state = row.text("state")?;
        Ok(Lease {
            network: row.text("network")?,
            address: row.parsed("address")?,
            mac: row.parsed("mac")?,
            state: read_state(&state).ok_or_else(|| row.corrupt("state", &state))?,
            at: row.millis("at_ms")?,
            until: row.millis("until_ms")?,
            host_name: row.text("host_name")?,
            location: row.opt_text("location")?,
        })
    })
}

fn read_state(word: &str) -> Option<LeaseState> {
    let all = [LeaseState::Bound, LeaseState::Released, LeaseState::Taken];
    all.into_iter().find(|state| state.to_string() == word)
}

/// Replaces what is known of an address. What is older than that is left alone: leases are told in their order, but
/// after a restart the log tells all of them again.
pub(crate) async fn upsert(db: &mut AnyConnection, lease: &Lease) -> Result<(), StoreError> {
    const SQL: &str = "insert into lease
            (network, address, mac, state, at_ms, until_ms, host_name, location)
        values ($1, $2, $3, $4, $5, $6, $7, $8)
        on conflict (network, address) do update set mac = excluded.mac, state = excluded.state,
            at_ms = excluded.at_ms, until_ms = excluded.until_ms, host_name = excluded.host_name,
            location = excluded.location
        where excluded.at_ms >= lease.at_ms";
    let query = sqlx::query(SQL)
        .bind(lease.network.as_str())
        .bind(lease.address.to_string())
        .bind(lease.mac.to_string())
        .bind(lease.state.to_string())
        .bind(lease.at.0)
        .bind(lease.until.0)
        .bind(lease.host_name.as_str())
        .bind(lease.location.as_deref());
    query.execute(db).await.map_err(StoreError::query("write a lease"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use model::UnixMillis;

    use super::*;
    use crate::{Record, testing::Book};

    fn lease(network: &str, last: u8, mac: u8, at: i64) -> Lease {
        Lease {
            network: network.to_owned(),
            address: [192, 0, 2, last].into(),
            mac: MacAddr([2, 0x5a, 0x10, 0, 0, mac]),
            state: LeaseState::Bound,
            at: UnixMillis(at),
            until: UnixMillis(at + 120_000),
            host_name: "<b>x\u{fffd}".to_owned(),
            location: Some("192.0.2.254 eth1/3".to_owned()),
        }
    }

    #[tokio::test]
    async fn an_address_is_told_of_as_it_was_last() {
        let book = Book::open().await;
        let first = lease("boot", 100, 1, 10);
        let taken =
            Lease { state: LeaseState::Taken, at: UnixMillis(20), location: None, ..first.clone() };
        let write = |leases: &[Lease]| {
            book.write(leases.iter().cloned().map(Record::Lease).collect::<Vec<_>>())
        };
        write(&[first.clone(), taken.clone()]).await;
        // Told again from the log, late.
        write(&[first]).await;
        assert_eq!(list(&book.store, None, None, 9).await.unwrap(), [taken]);
    }

    #[tokio::test]
    async fn leases_are_found_by_network_and_by_hardware_address() {
        let book = Book::open().await;
        let leases =
            [lease("boot", 100, 1, 30), lease("boot", 101, 2, 20), lease("lab", 100, 1, 10)];
        book.write(leases.iter().cloned().map(Record::Lease).collect()).await;
        let [a, b, c] = leases;
        let store = &book.store;
        let all = list(store, None, None, 9).await.unwrap();
        assert_eq!(all, [a.clone(), b.clone(), c.clone()]);
        assert_eq!(list(store, Some("boot"), None, 9).await.unwrap(), [a.clone(), b]);
        assert_eq!(list(store, None, Some(a.mac), 9).await.unwrap(), [a.clone(), c]);
        let first = [a];
        assert_eq!(list(store, Some("boot"), Some(first[0].mac), 9).await.unwrap(), first);
        assert_eq!(list(store, None, None, 1).await.unwrap(), first);
    }
}
