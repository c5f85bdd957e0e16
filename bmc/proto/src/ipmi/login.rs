//! User name and password as RMCP+ can carry them.
//!
//! A [`Secret`] has no `Debug`, no `Display` and no serialisation, so no text of ours can hold one.

use std::fmt;

/// Longest password RMCP+ can carry, in bytes (section 22.30).
pub const PASSWORD_MAX: usize = 20;
/// Longest user name, in bytes (section 22.28).
pub const NAME_MAX: usize = 16;

/// A password. It cannot be printed.
#[derive(Clone)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// Keeps the bytes of a password.
    #[must_use]
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    /// The 20-byte key RMCP+ makes of it: the bytes, filled up with zeros.
    pub(crate) fn key(&self) -> [u8; PASSWORD_MAX] {
        let mut key = [0; PASSWORD_MAX];
        for (to, from) in key.iter_mut().zip(&self.0) {
            *to = *from;
        }
        key
    }
}

/// A user name of at most 16 bytes.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct UserName(Vec<u8>);

impl UserName {
    /// Checks the length.
    ///
    /// # Errors
    /// When it is longer than 16 bytes.
    pub fn new(name: impl Into<Vec<u8>>) -> Result<Self, LoginError> {
        let name = name.into();
        if name.len() > NAME_MAX { Err(LoginError::LongName(name.len())) } else { Ok(Self(name)) }
    }

    /// Its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Its length as the one-byte field of RAKP 1.
    pub(crate) fn wire_len(&self) -> u8 {
        u8::try_from(self.0.len()).expect("the constructor allows 16 bytes at most")
    }
}

impl fmt::Display for UserName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&String::from_utf8_lossy(&self.0))
    }
}

impl fmt::Debug for UserName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(&self.0))
    }
}

/// Why a user name or password cannot be sent at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    /// Cut passwords would log in on some BMCs and not on others: refused instead.
    #[error(
        "the BMC password has {0} bytes; IPMI carries at most {PASSWORD_MAX}: set a shorter one on the BMC"
    )]
    LongPassword(usize),
    /// Too long.
    #[error(
        "the BMC user name has {0} bytes; IPMI carries at most {NAME_MAX}: use another account"
    )]
    LongName(usize),
}

/// Who logs in. Checked: whatever is inside can be sent.
#[derive(Clone)]
pub struct Login {
    pub(crate) user: UserName,
    pub(crate) password: Secret,
}

impl Login {
    /// Checks both lengths before anything is sent.
    ///
    /// # Errors
    /// [`LoginError`], which tells lengths only.
    pub fn new(user: &str, password: Secret) -> Result<Self, LoginError> {
        let user = UserName::new(user)?;
        if password.0.len() > PASSWORD_MAX {
            return Err(LoginError::LongPassword(password.0.len()));
        }
        Ok(Self { user, password })
    }

    /// The user name.
    #[must_use]
    pub fn user(&self) -> &UserName {
        &self.user
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_carried_is_refused_and_the_error_holds_no_secret() {
        let cases = [
            ("longest of both", "sixteen-letters-", 20, Ok(())),
            ("long password", "admin", 21, Err(LoginError::LongPassword(21))),
            ("long name", "seventeen-letters", 4, Err(LoginError::LongName(17))),
        ];
        for (name, user, length, want) in cases {
            let password = "S3cret-Lab!#%&7".repeat(2)[..length].to_owned();
            let got = Login::new(user, Secret::new(password)).map(|_| ());
            assert_eq!(got, want, "{name}");
            if let Err(error) = got {
                assert!(!format!("{error} {error:?}").contains("S3cret"), "{name}");
            }
        }
    }
}
