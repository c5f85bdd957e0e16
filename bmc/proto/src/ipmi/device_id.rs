//! Get Device ID and Get System GUID (sections 20.1 and 22.14).

use super::message::{Command, NetFn};
use crate::wire::{DecodeError, Reader};

/// Get Device ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GetDeviceId;

/// Which BMC this is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceId {
    /// Device ID.
    pub device: u8,
    /// Device revision, raw.
    pub revision: u8,
    /// Firmware major revision, seven bits.
    pub firmware_major: u8,
    /// Firmware minor revision as it is read: BCD 0x50 gives 50.
    pub firmware_minor: u8,
    /// IPMI version as (major, minor).
    pub ipmi: (u8, u8),
    /// Additional device support, raw.
    pub support: u8,
    /// Manufacturer's enterprise number, 20 bits.
    pub manufacturer: u32,
    /// Product, as the manufacturer counts.
    pub product: u16,
    /// Auxiliary firmware revision: four bytes, three or none.
    pub auxiliary: Vec<u8>,
}

/// A packed decimal byte as its number; other bytes (some BMCs count in binary) as they are.
fn from_bcd(byte: u8) -> u8 {
    let (high, low) = (byte >> 4, byte & 0x0f);
    if high < 10 && low < 10 { high * 10 + low } else { byte }
}

fn to_bcd(number: u8) -> u8 {
    if number < 100 { ((number / 10) << 4) | (number % 10) } else { number }
}

impl DeviceId {
    /// Value in, response data out.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let [m0, m1, m2, _] = self.manufacturer.to_le_bytes();
        let [p0, p1] = self.product.to_le_bytes();
        let (major, minor) = self.ipmi;
        let mut out = vec![
            self.device,
            self.revision,
            self.firmware_major & 0x7f,
            to_bcd(self.firmware_minor),
            minor << 4 | major & 0x0f,
            self.support,
        ];
        out.extend([m0, m1, m2, p0, p1]);
        out.extend(&self.auxiliary);
        out
    }

    /// Major and minor as people write them: `2.50`.
    #[must_use]
    pub fn firmware(&self) -> String {
        format!("{}.{:02}", self.firmware_major, self.firmware_minor)
    }
}

impl Command for GetDeviceId {
    const NAME: &'static str = "Get Device ID";
    const NETFN: NetFn = NetFn::APP;
    const CODE: u8 = 0x01;
    type Answer = DeviceId;

    fn data(&self) -> Vec<u8> {
        vec![]
    }

    fn answer(&self, data: &[u8]) -> Result<DeviceId, DecodeError> {
        let mut reader = Reader::new(Self::NAME, data);
        let [device, revision, major, minor, ipmi, support] = reader.array()?;
        let [m0, m1, m2] = reader.array()?;
        let product = reader.u16()?;
        Ok(DeviceId {
            device,
            revision,
            firmware_major: major & 0x7f,
            firmware_minor: from_bcd(minor),
            ipmi: (ipmi & 0x0f, ipmi >> 4),
            support,
            manufacturer: u32::from_le_bytes([m0, m1, m2 & 0x0f, 0]),
            product,
            auxiliary: reader.rest().iter().copied().take(4).collect(),
        })
    }
}

/// Get System GUID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GetSystemGuid;

/// The 16 bytes as they came. Which order they are in, BMCs do not agree on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SystemGuid(pub [u8; 16]);

impl SystemGuid {
    /// The UUID they stand for; `None` for all zeros or all ones.
    ///
    /// The order is told by the version and variant fields of RFC 4122: SMBIOS order first (what most send),
    /// then the reversed order of section 20.8, then RFC order. If none fits (HPE's UUIDs are ASCII text),
    /// SMBIOS order.
    #[must_use]
    pub fn uuid(self) -> Option<model::Uuid> {
        let straight = model::Uuid(self.0);
        if straight.is_junk() {
            return None;
        }
        let mut reversed = self.0;
        reversed.reverse();
        let smbios = model::Uuid::from_smbios(self.0);
        let orders = [smbios, model::Uuid(reversed), straight];
        Some(orders.into_iter().find(looks_right).unwrap_or(smbios))
    }
}

/// Version 1 to 5, variant "10".
fn looks_right(uuid: &model::Uuid) -> bool {
    let [_, _, _, _, _, _, version, _, variant, ..] = uuid.0;
    (1..=5).contains(&(version >> 4)) && variant >> 6 == 0b10
}

impl Command for GetSystemGuid {
    const NAME: &'static str = "Get System GUID";
    const NETFN: NetFn = NetFn::APP;
    const CODE: u8 = 0x37;
    type Answer = SystemGuid;

    fn data(&self) -> Vec<u8> {
        vec![]
    }

    fn answer(&self, data: &[u8]) -> Result<SystemGuid, DecodeError> {
        Reader::new(Self::NAME, data).array().map(SystemGuid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_and_short_answers_are_read() {
        let long = [0x20, 1, 2, 0x35, 2, 0xbf, 0x0b, 0, 0, 0x20, 0x20, 0, 0, 0, 0];
        let id = GetDeviceId.answer(&long).unwrap();
        assert_eq!((id.firmware().as_str(), id.ipmi), ("2.35", (2, 0)));
        assert_eq!((id.manufacturer, id.product), (11, 0x2020));
        assert_eq!(id.encode(), long);
        // vbmc: 14 bytes; the smallest allowed has 11.
        let short = [0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(GetDeviceId.answer(&short).unwrap().auxiliary, [0; 3]);
        assert_eq!(GetDeviceId.answer(&long[..11]).unwrap().auxiliary, []);
        assert!(GetDeviceId.answer(&long[..10]).is_err());
    }

    #[test]
    fn a_guid_is_read_in_whichever_order_it_comes() {
        let uuid: model::Uuid = "a1b2c3d4-e5f6-4798-a9ea-4b5c6d7e8f90".parse().unwrap();
        let mut reversed = uuid.0;
        reversed.reverse();
        for (name, bytes) in
            [("SMBIOS", uuid.swapped().0), ("IPMI", reversed), ("RFC 4122", uuid.0)]
        {
            assert_eq!(SystemGuid(bytes).uuid(), Some(uuid), "{name}");
        }
        let hp = b"6549184CZ3300903";
        assert_eq!(SystemGuid(*hp).uuid(), Some(model::Uuid::from_smbios(*hp)));
        assert_eq!(SystemGuid([0; 16]).uuid(), None);
        assert_eq!(SystemGuid([0xff; 16]).uuid(), None);
    }
}
