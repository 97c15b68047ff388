//! Servers and clients that we did not write. `tests/third_party/install.sh` installs them; without them these tests are ignored.

mod documents;
mod third_party_agentdojo;
mod third_party_broken_entries;
mod third_party_clients;
mod third_party_conformance;
mod third_party_docs;
mod third_party_http;
mod third_party_http_clients;
mod third_party_issued_tokens;
mod third_party_logins;
mod third_party_openapi;
mod third_party_otlp;
mod third_party_page;
mod third_party_prelude;
mod third_party_proxy;
mod third_party_python;
mod third_party_results;
mod third_party_servers;
mod third_party_servers_together;
mod third_party_transcripts;
