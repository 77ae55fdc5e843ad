//! Functions that are compiled for several sets of instructions of the processor, and which set is used.
//!
//! Each loop is written once, in plain Rust that the compiler vectorises, and compiled for AVX-512, AVX2 with FMA, and the
//! baseline; the copy is chosen at run time. The first two run the same operations and give the same bits; the baseline has no
//! fused multiply-add, and its results may differ from theirs in the last bits.

#[cfg(target_arch = "x86_64")]
use std::sync::OnceLock;

/// Sets of instructions, each of which has those before it.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Instructions {
    Baseline,
    Avx2,
    Avx512,
}

#[cfg(target_arch = "x86_64")]
impl Instructions {
    /// Those that are used: those that the processor has, or fewer if the variable `SVML_INSTRUCTIONS` says so, by which tests
    /// compare the sets on one processor.
    #[inline]
    pub fn used() -> Self {
        static USED: OnceLock<Instructions> = OnceLock::new();
        *USED.get_or_init(|| {
            let most =
                std::env::var("SVML_INSTRUCTIONS").map_or(Self::Avx512, |name| Self::named(&name));
            Self::present().min(most)
        })
    }

    /// `avx2` or `baseline`; with any other name all that there are.
    fn named(name: &str) -> Self {
        match name {
            "baseline" => Self::Baseline,
            "avx2" => Self::Avx2,
            _ => Self::Avx512,
        }
    }

    /// Those of the processor.
    fn present() -> Self {
        let fma = std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma");
        let wide = std::is_x86_feature_detected!("avx512f")
            && std::is_x86_feature_detected!("avx512dq")
            && std::is_x86_feature_detected!("avx512vl");
        match (fma, wide) {
            (true, true) => Self::Avx512,
            (true, false) => Self::Avx2,
            (false, _) => Self::Baseline,
        }
    }
}

/// Declares a function compiled for several sets of instructions from one generic body
/// `body::<FMA>(..)`, where FMA says whether `mul_add` compiles to a single instruction. With `, by width` the body is
/// `body::<FMA, WIDE>(..)`, where WIDE says whether there are 32 registers of eight numbers.
macro_rules! dispatch {
    ($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)? = $body:ident) => {
        dispatch! {
            $(#[$doc])*
            fn $name($($arg: $ty),*) $(-> $ret)? = $body, [true], [true], [{ cfg!(target_arch = "aarch64") }]
        }
    };
    ($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)? = $body:ident, by width) => {
        dispatch! {
            $(#[$doc])*
            fn $name($($arg: $ty),*) $(-> $ret)? = $body,
                [true, true], [true, false], [{ cfg!(target_arch = "aarch64") }, false]
        }
    };
    (
        $(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)? = $body:ident,
        [$($avx512:tt),*], [$($avx2:tt),*], [$($baseline:tt),*]
    ) => {
        $(#[$doc])*
        #[allow(clippy::too_many_arguments)]
        pub(crate) fn $name($($arg: $ty),*) $(-> $ret)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx2,fma")]
                fn avx512($($arg: $ty),*) $(-> $ret)? { $body::<$($avx512),*>($($arg),*) }
                #[target_feature(enable = "avx2,fma")]
                fn avx2($($arg: $ty),*) $(-> $ret)? { $body::<$($avx2),*>($($arg),*) }
                let used = $crate::linalg::instructions::Instructions::used();
                if used == $crate::linalg::instructions::Instructions::Avx512 {
                    // SAFETY: these instructions are used only if the processor has them.
                    #[allow(unsafe_code)]
                    return unsafe { avx512($($arg),*) };
                }
                if used == $crate::linalg::instructions::Instructions::Avx2 {
                    // SAFETY: as above.
                    #[allow(unsafe_code)]
                    return unsafe { avx2($($arg),*) };
                }
            }
            $body::<$($baseline),*>($($arg),*)
        }
    };
}

pub(super) use dispatch;

/// `a b + c`, rounded once if there is an instruction for it.
#[inline(always)]
pub(super) fn mul_add<const FMA: bool>(a: f64, b: f64, c: f64) -> f64 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::Instructions::{self, Avx2, Avx512, Baseline};

    #[test]
    fn names_ask_for_fewer_instructions() {
        assert!(Baseline < Avx2 && Avx2 < Avx512);
        for (name, set) in [("baseline", Baseline), ("avx2", Avx2), ("", Avx512), ("other", Avx512)]
        {
            assert_eq!(Instructions::named(name), set, "{name}");
        }
        assert!(Instructions::used() <= Instructions::present());
    }
}
