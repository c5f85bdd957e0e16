//! Cipher suites 3 and 17: authentication, integrity and AES-128-CBC (section 13.28 and table 22-20).
//!
//! Never suite 0 or any other without authentication, integrity and confidentiality.

use aes::{
    Aes128,
    cipher::{Block, BlockModeDecrypt, BlockModeEncrypt, KeyIvInit},
};
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::Sha256;

/// Size of an AES block and of an initialisation vector.
pub const BLOCK: usize = 16;

/// A suite we speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Suite {
    /// RAKP-HMAC-SHA1, HMAC-SHA1-96, AES-CBC-128.
    Three,
    /// RAKP-HMAC-SHA256, HMAC-SHA256-128, AES-CBC-128.
    Seventeen,
}

/// The numbers of three algorithms, as Open Session carries them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Algorithms {
    /// Authentication: 1 = RAKP-HMAC-SHA1, 3 = RAKP-HMAC-SHA256.
    pub authentication: u8,
    /// Integrity: 1 = HMAC-SHA1-96, 4 = HMAC-SHA256-128.
    pub integrity: u8,
    /// Confidentiality: 1 = AES-CBC-128.
    pub confidentiality: u8,
}

impl Suite {
    /// Every suite we speak, strongest first.
    pub const ALL: [Self; 2] = [Self::Seventeen, Self::Three];

    /// Its number in table 22-20.
    #[must_use]
    pub const fn id(self) -> u8 {
        match self {
            Self::Three => 3,
            Self::Seventeen => 17,
        }
    }

    /// The algorithms it stands for.
    #[must_use]
    pub const fn algorithms(self) -> Algorithms {
        match self {
            Self::Three => Algorithms { authentication: 1, integrity: 1, confidentiality: 1 },
            Self::Seventeen => Algorithms { authentication: 3, integrity: 4, confidentiality: 1 },
        }
    }

    /// The one suite that has exactly these three algorithms.
    #[must_use]
    pub fn from_algorithms(algorithms: Algorithms) -> Option<Self> {
        Self::ALL.into_iter().find(|suite| suite.algorithms() == algorithms)
    }

    /// Length of the cut code behind each packet and in RAKP 4, in bytes.
    #[must_use]
    pub const fn code_len(self) -> usize {
        match self {
            Self::Three => 12,
            Self::Seventeen => 16,
        }
    }

    /// HMAC over the concatenated parts, uncut.
    pub(crate) fn hmac(self, key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
        match self {
            Self::Three => keyed::<Hmac<Sha1>>(key, parts),
            Self::Seventeen => keyed::<Hmac<Sha256>>(key, parts),
        }
    }

    /// HMAC, cut to the length that goes behind packets.
    pub(crate) fn code(self, key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
        let mut code = self.hmac(key, parts);
        code.truncate(self.code_len());
        code
    }
}

fn keyed<M: Mac + KeyInit>(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let mut mac = <M as KeyInit>::new_from_slice(key).expect("HMAC takes keys of any length");
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().to_vec()
}

/// Encrypts a payload: the IV, then the ciphertext, padded as section 13.29 says (01 02 03 …, then the count).
pub(crate) fn encrypt(key: [u8; BLOCK], iv: [u8; BLOCK], payload: &[u8]) -> Vec<u8> {
    let mut plain = payload.to_vec();
    let mut pad = 0_u8;
    while !(plain.len() + 1).is_multiple_of(BLOCK) {
        pad += 1;
        plain.push(pad);
    }
    plain.push(pad);
    let mut machine = cbc::Encryptor::<Aes128>::new(&key.into(), &iv.into());
    let mut out = iv.to_vec();
    let (blocks, _) = plain.as_chunks::<BLOCK>();
    for block in blocks {
        let mut block = Block::<cbc::Encryptor<Aes128>>::from(*block);
        machine.encrypt_block(&mut block);
        out.extend_from_slice(&block);
    }
    out
}

/// The reverse of [`encrypt`]; `None` when length or padding cannot be.
pub(crate) fn decrypt(key: [u8; BLOCK], payload: &[u8]) -> Option<Vec<u8>> {
    let (iv, ciphertext) = payload.split_first_chunk::<BLOCK>()?;
    let (blocks, rest) = ciphertext.as_chunks::<BLOCK>();
    if !rest.is_empty() {
        return None;
    }
    let mut machine = cbc::Decryptor::<Aes128>::new(&key.into(), &(*iv).into());
    let mut out = Vec::with_capacity(ciphertext.len());
    for block in blocks {
        let mut block = Block::<cbc::Decryptor<Aes128>>::from(*block);
        machine.decrypt_block(&mut block);
        out.extend_from_slice(&block);
    }
    let pad = usize::from(out.pop()?);
    if pad >= BLOCK {
        return None;
    }
    out.truncate(out.len().checked_sub(pad)?);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hmac_gives_the_published_values() {
        // RFC 2202 case 2 and RFC 4231 case 2.
        let parts: [&[u8]; 2] = [b"what do ya want ", b"for nothing?"];
        let sha1 = model::hex::encode(&Suite::Three.hmac(b"Jefe", &parts));
        assert_eq!(sha1, "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79");
        let sha256 = model::hex::encode(&Suite::Seventeen.hmac(b"Jefe", &parts));
        assert_eq!(sha256, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    }

    #[test]
    fn aes_gives_the_published_first_block() {
        // NIST SP 800-38A, F.2.1, first block.
        let key = model::hex::decode("2b7e151628aed2a6abf7158809cf4f3c").unwrap();
        let plain = model::hex::decode("6bc1bee22e409f96e93d7e117393172a").unwrap();
        let iv: [u8; 16] = core::array::from_fn(|i| u8::try_from(i).unwrap());
        let out = encrypt(key.try_into().unwrap(), iv, &plain);
        assert_eq!(model::hex::encode(&out[16..32]), "7649abac8119b246cee98e9b12e9197d");
    }

    #[test]
    fn every_length_comes_back_and_broken_padding_does_not() {
        let (key, iv) = ([7; 16], [9; 16]);
        for length in 0..64 {
            let payload = vec![0xa5; length];
            let sealed = encrypt(key, iv, &payload);
            assert!(sealed.len().is_multiple_of(16));
            assert_eq!(decrypt(key, &sealed), Some(payload));
        }
        assert_eq!(decrypt(key, &[0; 31]), None);
        assert_eq!(decrypt(key, &[0; 16]), None);
        assert_eq!(decrypt(key, &[]), None);
    }
}
