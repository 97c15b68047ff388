//! Prints the source of a library definition on one line, without comments, as programs see it by `(source name)`.

use crate::lexer::Token;
use logos::Logos;
use ptc_vm::Span;

/// The form at this span of a text, without comments and line breaks.
pub(super) fn on_one_line(source: &str, form: Span) -> Box<str> {
    let text = source.get(form.start as usize..form.end as usize).unwrap_or("");
    let mut line = String::with_capacity(text.len());
    let mut is_open = true;
    let mut lexer = Token::lexer(text);
    while let Some(token) = lexer.next() {
        let closes = matches!(token, Ok(Token::CloseList | Token::CloseVector | Token::CloseMap));
        if !is_open && !closes {
            line.push(' ');
        }
        line.push_str(lexer.slice());
        is_open = matches!(
            token,
            Ok(Token::OpenList
                | Token::OpenVector
                | Token::OpenMap
                | Token::OpenSet
                | Token::OpenShortFn
                | Token::Quote
                | Token::VarQuote)
        );
    }
    line.into_boxed_str()
}
