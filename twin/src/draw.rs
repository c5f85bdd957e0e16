//! How much power a blade draws: a model, seeded and slowly varying.
//!
//! Levels follow what Gen8 blades are known to take at 12 V: some 90 W while firmware runs (memory training,
//! all cores awake), 62 to 70 W idle, more when busy. Not a calibration: the twin's numbers prove the path, not
//! the watt.

use std::time::Duration;

use crate::chance::Chance;

/// What the machine is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Standby: only the BMC lives.
    Off,
    /// Power-on self test and network boot.
    Firmware,
    /// A system runs and has nothing to do.
    Idle,
    /// A system works: an installer, an agent.
    Busy,
}

/// One blade's curve.
#[derive(Debug, Clone)]
pub struct Draw {
    idle: f64,
    phase: f64,
    period_s: f64,
}

impl Draw {
    /// The curve of blade `bay` in the lab of `seed`.
    #[must_use]
    pub fn new(seed: u64, bay: u8) -> Self {
        let mut chance = Chance::new(seed, 0x5741_5454 + u64::from(bay));
        let idle = 62.0 + f64::from(bay % 9);
        let phase = chance.unit() * std::f64::consts::TAU;
        Self { idle, phase, period_s: 60.0 + 60.0 * chance.unit() }
    }

    /// Watts taken from the backplane `at` so long after the lab started; `None` when the blade is off, since
    /// its meter then has nothing to say.
    #[must_use]
    pub fn watts(&self, stage: Stage, at: Duration) -> Option<f64> {
        let level = match stage {
            Stage::Off => return None,
            Stage::Firmware => 90.0,
            Stage::Idle => self.idle,
            Stage::Busy => 110.0,
        };
        let angle = self.phase + at.as_secs_f64() / self.period_s * std::f64::consts::TAU;
        Some(level * (1.0 + 0.02 * angle.sin()))
    }

    /// The same in whole watts, as DCMI carries them.
    #[must_use]
    pub fn whole_watts(&self, stage: Stage, at: Duration) -> Option<u16> {
        let watts = self.watts(stage, at)?;
        // Levels lie between 60 and 115 W; a search of some hundred steps needs no cast that could lie.
        (0..=u16::MAX).find(|whole| f64::from(*whole) + 0.5 > watts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draw_follows_the_stage_and_varies_slowly() {
        for bay in 1..=16 {
            let draw = Draw::new(1, bay);
            assert_eq!(draw.watts(Stage::Off, Duration::ZERO), None);
            let mut last = draw.watts(Stage::Idle, Duration::ZERO).unwrap();
            for second in 1..300 {
                let at = Duration::from_secs(second);
                let idle = draw.watts(Stage::Idle, at).unwrap();
                assert!((60.0..72.0).contains(&idle), "bay {bay}: {idle} W idle");
                assert!((idle - last).abs() < 0.5, "bay {bay}: jump of {} W", idle - last);
                assert!(draw.watts(Stage::Firmware, at).unwrap() > idle);
                assert!(draw.watts(Stage::Busy, at).unwrap() > 100.0);
                last = idle;
            }
        }
    }
}
