//! Declaration of shapes.

/// Declares the shape of a type: the names of its members, with their fields. Fields behind `;` are
/// flattened. A field may be followed by a form. `as written` is a number or a flag of a query. `as
/// many` is a list or one item. In an `update`, an absent member keeps the stored value, and so `null` is
/// refused unless it clears the value. For an enum, the words of the tag have members with their types.
macro_rules! shape {
    ($type:ident { $($members:tt)* }) => {
        $crate::json::shape! { @object members $type { $($members)* } }
    };
    (update $type:ident { $($members:tt)* }) => {
        $crate::json::shape! { @object update $type { $($members)* } }
    };
    (@object $kind:ident $type:ident {
        $($name:literal $(| $alias:literal)* : $field:ident $(as $how:ident)?),* $(,)?
        $(; $($flat:ident $(by $orders:path)?),+)?
    }) => {
        impl $crate::json::Shaped for $type {
            fn shape() -> $crate::json::Shape {
                const MEMBERS: &[$crate::json::Member] = &[$(
                    $crate::json::shape!(
                        @member $type, [$name $(, $alias)*], $field $(, $how)?
                    ),
                )*];
                const FLAT: &[$crate::json::Flat] = &[$($(
                    $crate::json::shape!(@flat $type, $flat $(, $orders)?),
                )+)?];
                $crate::json::Shape::$kind::<Self>(MEMBERS, FLAT)
            }
        }
    };
    ($type:ident by $tag:literal {
        $($word:literal: { $($name:literal: $of:ty),* $(; $flat:ty)? }),* $(,)?
    }) => {
        impl $crate::json::Shaped for $type {
            fn shape() -> $crate::json::Shape {
                $crate::json::Shape::tagged::<Self>($tag, &[$(
                    ($word, || {
                        const MEMBERS: &[$crate::json::Member] =
                            &[$($crate::json::Member::typed::<$of>(&[$name])),*];
                        const FLAT: &[$crate::json::Flat] =
                            &[$($crate::json::Flat::typed::<$flat>())?];
                        $crate::json::Shape::members::<::serde::de::IgnoredAny>(MEMBERS, FLAT)
                    }),
                )*])
            }
        }
    };
    (@member $type:ident, $names:tt, $field:ident) => {
        $crate::json::Member::of(&$names, |it: &$type| &it.$field)
    };
    (@member $type:ident, $names:tt, $field:ident, $how:ident) => {
        $crate::json::Member::$how(&$names, |it: &$type| &it.$field)
    };
    (@flat $type:ident, $field:ident) => {
        $crate::json::Flat::of(|it: &$type| &it.$field)
    };
    (@flat $type:ident, $field:ident, $orders:path) => {
        $crate::json::Flat::page(|it: &$type| &it.$field, $orders)
    };
}
pub(crate) use shape;
