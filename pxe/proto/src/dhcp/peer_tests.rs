//! dhcproto as a second opinion on well-formed packets, both ways.

use dhcproto::{Decodable, Decoder, Encodable, v4};
use model::MacAddr;
use proptest::prelude::*;

use super::{Message, Op, options::sub_options};

/// Options of the right shape for their code, as a client or server of any kind might send them.
fn option() -> impl Strategy<Value = (u8, Vec<u8>)> {
    let bytes = |least: usize| prop::collection::vec(any::<u8>(), least..200);
    let text = "[a-z0-9.-]{1,60}".prop_map(String::into_bytes);
    let addresses = prop::collection::vec(any::<[u8; 4]>(), 1..10).prop_map(|list| list.concat());
    // One: dhcproto drops the others of a list.
    let archs = any::<[u8; 2]>().prop_map(|arch| arch.to_vec());
    prop_oneof![
        (
            prop::sample::select(vec![1_u8, 28, 50, 54, 118]),
            any::<[u8; 4]>().prop_map(|a| a.to_vec())
        ),
        (prop::sample::select(vec![3_u8, 6, 42]), addresses),
        (prop::sample::select(vec![12_u8, 15, 66, 67]), text),
        (prop::sample::select(vec![51_u8, 58, 59]), any::<[u8; 4]>().prop_map(|a| a.to_vec())),
        (Just(57_u8), any::<[u8; 2]>().prop_map(|a| a.to_vec())),
        (prop::sample::select(vec![43_u8, 55, 60, 77]), bytes(1)),
        (Just(61_u8), bytes(2)),
        (Just(93_u8), archs),
        (Just(94_u8), any::<[u8; 3]>().prop_map(|a| a.to_vec())),
        (Just(97_u8), bytes(16).prop_map(|id| [&[0], &id[..16]].concat())),
        (prop::sample::select(vec![175_u8, 209, 224, 250]), bytes(1)),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    let names = ("[a-z/.]{0,127}", "[a-z.]{0,63}");
    let fixed = (any::<bool>(), any::<u32>(), any::<u16>(), any::<[u32; 4]>(), any::<[u8; 6]>());
    let options = prop::collection::btree_map(1..=8_u8, option(), 0..8);
    (fixed, any::<u16>(), 0..17_u8, names, 1..=8_u8, options).prop_map(
        |((is_reply, xid, secs, addresses, mac), flags, hops, (file, sname), kind, options)| {
            let op = if is_reply { Op::Reply } else { Op::Request };
            let mut message = Message::new(op, xid, MacAddr(mac));
            (message.secs, message.flags, message.hops) = (secs, flags, hops);
            [message.ciaddr, message.yiaddr, message.siaddr, message.giaddr] =
                addresses.map(Into::into);
            (message.file, message.sname) = (file.into_bytes(), sname.into_bytes());
            message.options.set(53, [kind]);
            for (code, value) in options.into_values() {
                message.options.set(code, value);
            }
            message
        },
    )
}

fn sorted(message: &Message) -> Vec<(u8, Vec<u8>)> {
    let mut list: Vec<_> =
        message.options.iter().map(|(code, value)| (code, value.to_vec())).collect();
    list.sort();
    list
}

proptest! {
    #[test]
    fn what_we_write_dhcproto_reads_and_what_it_writes_we_read(ours in message()) {
        let bytes = ours.encode();
        let theirs = v4::Message::decode(&mut Decoder::new(&bytes)).unwrap();
        prop_assert_eq!(theirs.xid(), ours.xid);
        prop_assert_eq!(theirs.secs(), ours.secs);
        prop_assert_eq!(theirs.hops(), ours.hops);
        prop_assert_eq!(u16::from(theirs.flags()), ours.flags);
        prop_assert_eq!(theirs.chaddr(), ours.chaddr.octets());
        let addresses = [theirs.ciaddr(), theirs.yiaddr(), theirs.siaddr(), theirs.giaddr()];
        prop_assert_eq!(addresses, [ours.ciaddr, ours.yiaddr, ours.siaddr, ours.giaddr]);
        let again = Message::decode(&theirs.to_vec().unwrap()).unwrap();
        prop_assert_eq!(&again.warnings, &[]);
        prop_assert_eq!(sorted(&again), sorted(&ours));
        prop_assert_eq!(&again.file, &ours.file);
        prop_assert_eq!(&again.sname, &ours.sname);
        prop_assert_eq!(Message::decode(&bytes).unwrap().file, ours.file);
    }
}

/// dhcproto keeps sub-options of 82 in an order of its own, so they are compared one by one.
#[test]
fn both_read_the_same_relay_information() {
    let value = [&[1, 3, b'b', b'a', b'y', 2, 2, 7, 7, 5, 4, 192, 0, 2, 0][..]].concat();
    let mut ours = Message::new(Op::Request, 1, MacAddr([2, 0, 0, 0, 0, 1]));
    ours.options.set(53, [1]);
    ours.options.set(82, value.clone());
    let theirs = v4::Message::decode(&mut Decoder::new(&ours.encode())).unwrap();
    let again = Message::decode(&theirs.to_vec().unwrap()).unwrap();
    let parts = |value: &[u8]| {
        let mut parts: Vec<_> = sub_options(value).map(|(c, v)| (c, v.to_vec())).collect();
        parts.sort();
        parts
    };
    assert_eq!(parts(again.options.get(82).unwrap()), parts(&value));
}
