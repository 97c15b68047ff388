//! What nodes with one database do when the database, a node or a message fails, or is hostile. PostgreSQL has to be
//! installed.

mod lost_parts;
mod missed_messages;
mod no_token;
mod session_tools;
mod sessions_at_once;
mod sessions_closed;
mod standing_still;
mod strangers;
