//! Promises of `ptc serve --http` to its clients and its operators.

mod any_node;
mod client_features_http;
mod http;
mod http_hostile;
mod http_limits;
mod http_reload;
mod http_revoked;
mod http_servers;
mod http_streams;
mod http_trace;
mod issued_tokens;
mod issued_tokens_attacked;
mod issuer;
mod keycloak;
mod nodes;
mod page;
mod policy_matrix;
mod secrets_http;
mod shared_counts;
mod tasks_of_nodes;
