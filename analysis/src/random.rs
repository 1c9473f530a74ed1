//! Seeded generators: a tiny one (SplitMix64) for tests, and the one that the reference's shuffle uses (`std::mt19937`).

/// A sequence of numbers that depends on its seed only.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The generator with this seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 if the bound is 0.
    pub const fn below(&mut self, bound: u32) -> u32 {
        if bound == 0 { 0 } else { (self.next() % bound as u64) as u32 }
    }

    /// True about `percent` times of a hundred.
    pub const fn percent(&mut self, percent: u32) -> bool {
        self.below(100) < percent
    }
}

/// Numbers generated at once.
const STATE: usize = 624;

/// Distance of two numbers that are combined.
const DISTANCE: usize = 397;

/// The Mersenne Twister of 32 bits (Matsumoto and Nishimura 1998), with the parameters of `std::mt19937`.
#[derive(Clone, Debug)]
pub(crate) struct MersenneTwister {
    state: Vec<u32>,
    index: usize,
}

impl MersenneTwister {
    /// The generator with the low 32 bits of the seed.
    pub fn new(seed: u64) -> Self {
        let mut state = vec![(seed & u64::from(u32::MAX)) as u32];
        for index in 1..STATE as u32 {
            let last = state[index as usize - 1];
            state.push((last ^ (last >> 30)).wrapping_mul(1_812_433_253).wrapping_add(index));
        }
        Self { state, index: STATE }
    }

    fn refill(&mut self) {
        for index in 0..STATE {
            let mixed = (self.state[index] & 0x8000_0000) | (self.state[(index + 1) % STATE] & 0x7fff_ffff);
            let twisted = (mixed >> 1) ^ if mixed & 1 == 1 { 0x9908_b0df } else { 0 };
            self.state[index] = self.state[(index + DISTANCE) % STATE] ^ twisted;
        }
        self.index = 0;
    }

    /// The next number.
    pub fn next(&mut self) -> u32 {
        if self.index == STATE {
            self.refill();
        }
        let mut number = self.state[self.index];
        self.index += 1;
        number ^= number >> 11;
        number ^= (number << 7) & 0x9d2c_5680;
        number ^= (number << 15) & 0xefc6_0000;
        number ^ (number >> 18)
    }
}

#[cfg(test)]
mod tests {
    use super::{MersenneTwister, Random};

    /// The first numbers of seed 1234567, as the generator's authors publish them.
    #[test]
    fn tiny_one_is_splitmix() {
        let mut random = Random::new(1_234_567);
        let numbers = [(); 5].map(|()| random.next());
        assert_eq!(
            numbers,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423,
                4_593_380_528_125_082_431,
                16_408_922_859_458_223_821,
            ]
        );
    }

    /// The C++ standard names the 10,000th number of the default seed.
    #[test]
    fn twister_is_the_standard_one() {
        let mut random = MersenneTwister::new(5489);
        let last = (0..10_000).map(|_| random.next()).last();
        assert_eq!(last, Some(4_123_659_995));
    }
}
