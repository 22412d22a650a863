//! One macro for every enumeration of the control link: a value is one byte, any other
//! byte is refused by the field's name.

macro_rules! coded_enum {
    ($(#[$meta:meta])* $name:ident ($field:literal) { $($(#[$vmeta:meta])* $variant:ident = $code:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum $name { $($(#[$vmeta])* $variant = $code),+ }

        impl $name {
            /// All values, in order of their codes.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            pub(super) fn from_code(code: u8) -> Result<Self, $crate::control::FrameError> {
                match code {
                    $($code => Ok(Self::$variant),)+
                    _ => Err($crate::control::FrameError::Field($field)),
                }
            }
        }
    };
}
