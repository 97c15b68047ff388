//! Defines the macro that declares an enum as a table: its variants and their names.

/// Makes an enum with a row for each variant, and its function `name`. With `ALL` it also has a list of all variants, and
/// `parse`, which finds the variant of a name.
#[macro_export]
macro_rules! named_enum {
    ($(#[$about:meta])* $vis:vis enum $name:ident {
        $($(#[$doc:meta])* $variant:ident = $text:literal,)+
    }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $name { $($(#[$doc])* $variant,)+ }

        impl $name {
            /// Its name.
            $vis const fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)+ }
            }
        }
    };
    ($(#[$about:meta])* $vis:vis enum $name:ident, ALL {
        $($(#[$doc:meta])* $variant:ident = $text:literal,)+
    }) => {
        $crate::named_enum! { $(#[$about])* $vis enum $name { $($(#[$doc])* $variant = $text,)+ } }

        impl $name {
            /// All of them, in order.
            $vis const ALL: [$name; [$($text),+].len()] = [$($name::$variant),+];

            /// The one of this name.
            $vis fn parse(name: &str) -> Option<$name> {
                $name::ALL.into_iter().find(|one| one.name() == name)
            }
        }
    };
}
