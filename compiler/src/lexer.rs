//! The lexer: splits source text into tokens.

use logos::Logos;

/// The tokens. Whitespace (comma included) and comments separate them, but are not needed:
/// adjacent tokens may touch.
#[derive(Logos, Clone, Copy, Debug, PartialEq, Eq)]
#[logos(skip r"[ \t\r\n,]+")]
#[logos(skip(r";[^\n]*", allow_greedy = true))]
pub(crate) enum Token {
    #[token("(")]
    OpenList,
    #[token("[")]
    OpenVector,
    #[token("{")]
    OpenMap,
    #[token("#{")]
    OpenSet,
    #[token("#(")]
    OpenShortFn,
    #[token(")")]
    CloseList,
    #[token("]")]
    CloseVector,
    #[token("}")]
    CloseMap,

    #[regex(r"-?[0-9]+")]
    Integer,
    #[regex(r"-?[0-9]+\.[0-9]+([eE][+-]?[0-9]+)?")]
    #[regex(r"-?[0-9]+[eE][+-]?[0-9]+")]
    Float,
    #[regex(r"##(Inf|-Inf|NaN)")]
    SpecialFloat,

    #[regex(r#""([^"\\]|\\[^\n\r])*""#)]
    Str,
    #[regex(r##"#"([^"\\]|\\[^\n\r])*""##)]
    Regex,
    #[token("\"")]
    #[token("#\"")]
    UnclosedStr,

    #[regex(r"\\[^ \t\r\n]")]
    #[regex(r"\\(newline|space|tab|return|backspace|formfeed)")]
    Char,

    #[regex(r":[a-zA-Z0-9+\-*<>=?!_]+")]
    Keyword,
    // A minus that starts a number is not part of a symbol, so a minus is followed by a non-digit.
    #[regex(r"[a-zA-Z+*/<>=?!_%.&][a-zA-Z0-9+\-*/<>=?!_%.&']*")]
    #[regex(r"-([a-zA-Z+\-*/<>=?!_%.&'][a-zA-Z0-9+\-*/<>=?!_%.&']*)?")]
    Symbol,
    #[token("'")]
    Quote,
    #[token("#'")]
    VarQuote,

    #[token("#_")]
    Discard,
    #[token("@")]
    Deref,
    #[token("`")]
    SyntaxQuote,
    #[token("~")]
    Unquote,
    #[token("^")]
    Metadata,
}

/// True for characters that may continue a symbol.
pub(crate) fn is_symbol_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "+-*/<>=?!_%.&'".contains(c)
}
