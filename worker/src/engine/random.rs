//! Owns `Math.random`: a small fast generator in place of the engine's, whose seed is the
//! time of day. It is not fit for secrets; [`super::entropy`] is.

use std::{cell::Cell, rc::Rc};

use rquickjs::{Ctx, Function, Object, Result, object::Property};

/// State of a xoshiro256++ generator.
#[derive(Debug, Default)]
pub(crate) struct Random {
    state: Cell<[u64; 4]>,
}

impl Random {
    /// Starts a sequence.
    pub(crate) fn seed(&self, bytes: &[u8; 32]) {
        let mut state = [0; 4];
        for (word, chunk) in state.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*chunk);
        }
        // The all-zero state is the one that never leaves itself.
        if state == [0; 4] {
            state = [1; 4];
        }
        self.state.set(state);
    }

    fn next(&self) -> u64 {
        let [a, b, c, d] = self.state.get();
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let shifted = b << 17;
        let (c, d) = (c ^ a, d ^ b);
        let (b, a) = (b ^ c, a ^ d);
        self.state.set([a, b, c ^ shifted, d.rotate_left(45)]);
        result
    }

    /// A number in [0, 1) with 53 random bits.
    pub(crate) fn unit(&self) -> f64 {
        const STEP: f64 = 1.0 / 9_007_199_254_740_992.0;
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double exactly")]
        let bits = (self.next() >> 11) as f64;
        bits * STEP
    }
}

/// Puts the generator in the place of `Math.random`, with the attributes of the built-in.
pub(crate) fn install(ctx: &Ctx<'_>, random: &Rc<Random>) -> Result<()> {
    let math: Object = ctx.globals().get("Math")?;
    let random = Rc::clone(random);
    let function = Function::new(ctx.clone(), move || random.unit())?.with_name("random")?.with_length(0)?;
    math.prop("random", Property::from(function).writable().configurable())
}
