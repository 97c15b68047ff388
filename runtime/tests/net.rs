//! The HTTP client: distinct errors, size limits, and redirects that carry no secrets.
#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "tasks of a test end with it")]

use crate::common;
use common::http::{Authority, Got, HttpServer, Reply, Step, free_port};
use ptc_base::net::{
    ClientCertificate, ClientOptions, Headers, HttpClient, Method, NetError, NetFault, TlsOptions, remedy,
};
use ptc_base::secrets::{Credential, SecretRegistry};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

fn headers() -> Headers {
    let mut headers = Headers::default();
    let (secret, _) = Credential::secret("Bearer tok-1234567890", &SecretRegistry::new());
    headers.secret("authorization", &secret).unwrap();
    headers.plain("x-plain", "p").unwrap();
    headers
}

/// Status and body of an answer.
async fn fetch(options: &ClientOptions, method: Method, url: &str, cap: usize) -> Result<String, NetError> {
    let client = HttpClient::new(options)?;
    let mut response = client.send(method, &url.parse().unwrap(), &headers(), None).await?;
    let body = response.body.read(cap).await?;
    Ok(format!("{} {}", response.status.as_u16(), String::from_utf8_lossy(&body)))
}

async fn get(url: &str) -> Result<String, NetError> {
    fetch(&ClientOptions::default(), Method::GET, url, 1 << 20).await
}

fn faulty(reply: impl Fn() -> Reply + Send + Sync + 'static) -> impl Future<Output = HttpServer> {
    HttpServer::new(move |_| reply())
}

#[tokio::test]
async fn errors_are_told_apart_and_have_remedies() {
    let body = || Reply::chunked(200, &[]).chunk("abc");
    let reset = faulty(move || body().then(Step::Close)).await;
    let garbage = faulty(move || body().then(Step::Send(b"zz\r\n".to_vec()))).await;
    let silent = faulty(|| Reply(vec![Step::Close])).await;
    let bad_gzip = faulty(|| Reply::new(200, &[("content-encoding", "gzip")], "this is not gzip")).await;
    let endless = faulty(|| Reply::new(302, &[("location", "/")], "")).await;
    let elsewhere = faulty(|| Reply::new(307, &[("location", "ftp://example.org/")], "")).await;
    let hangs = faulty(move || body().then(Step::Hang)).await;
    let plain = faulty(|| Reply::new(200, &[], "")).await;
    let strange = faulty(|| Reply(vec![Step::Send(b"220 mail.example.org ESMTP\r\n".to_vec())])).await;
    let self_signed = HttpServer::tls(&Authority::new(false), |_| Reply::new(200, &[], "")).await;
    let cases: [(String, NetFault, &str); 11] = [
        (format!("http://127.0.0.1:{}/", free_port().await), NetFault::Refused, "nothing listens there"),
        ("http://nobody.invalid/".to_owned(), NetFault::Dns, "host name"),
        (reset.url("/"), NetFault::Reset, "log"),
        (garbage.url("/"), NetFault::Garbage, "right kind"),
        (silent.url("/"), NetFault::Reset, "log"),
        (bad_gzip.url("/"), NetFault::Garbage, "right kind"),
        (endless.url("/"), NetFault::Redirect, "trust"),
        (elsewhere.url("/"), NetFault::Redirect, "trust"),
        (plain.url("/").replace("http:", "https:"), NetFault::Tls, "ca_file"),
        (strange.url("/"), NetFault::Garbage, "right kind"),
        (self_signed.url("/"), NetFault::Tls, "ca_file"),
    ];
    for (url, fault, advice) in cases {
        let error = get(&url).await.unwrap_err();
        assert_eq!(error.fault, fault, "{url}: {error}");
        assert!(remedy(&error.to_string()).unwrap().contains(advice), "{error}");
    }
    let options = ClientOptions { idle_timeout: Some(Duration::from_millis(50)), ..Default::default() };
    let error = fetch(&options, Method::GET, &hangs.url("/"), 100).await.unwrap_err();
    assert_eq!(error.to_string(), format!("no data: nothing came for 50 ms (127.0.0.1:{})", hangs.port));
}

#[tokio::test]
async fn a_cap_counts_decoded_bytes_while_they_stream() {
    // The server would never end.
    let bomb = faulty(|| {
        let header = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
        // One stored block of 65,535 zeros, repeated.
        let mut block = vec![0, 0xff, 0xff, 0, 0];
        block.resize(5 + 0xffff, 0);
        let reply = Reply::chunked(200, &[("content-encoding", "gzip")]).chunk(header);
        reply.then(Step::Forever(common::http::chunk(&block)))
    })
    .await;
    let error = get(&bomb.url("/")).await.unwrap_err();
    let NetFault::TooLarge { bytes, cap } = error.fault else { panic!("{error}") };
    assert!(cap == 1 << 20 && bytes > cap && bytes < 2 * cap, "{error}");
    let exact = faulty(|| Reply::new(200, &[], "x".repeat(1 << 20))).await;
    assert_eq!(get(&exact.url("/")).await.unwrap().len(), 4 + (1 << 20));
}

fn redirecting(status: u16, to: String) -> impl Future<Output = HttpServer> {
    HttpServer::new(move |got: &Got| match got.path.as_str() {
        "/there" => Reply::new(200, &[], format!("{} here", got.method)),
        _ => Reply::new(status, &[("location", &to)], ""),
    })
}

#[tokio::test]
async fn redirects_carry_no_secret_to_another_origin() {
    let other = redirecting(307, String::new()).await;
    for status in [301, 302, 307, 308] {
        let near = redirecting(status, "/there".to_owned()).await;
        let options = ClientOptions::default();
        assert_eq!(fetch(&options, Method::POST, &near.url("/"), 99).await.unwrap(), "200 POST here");
        assert_eq!(near.got()[1].header("authorization"), Some("Bearer tok-1234567890"));
        let far = redirecting(status, other.url("/there")).await;
        assert_eq!(get(&far.url("/")).await.unwrap(), "200 GET here");
        let there = other.got().remove(0);
        assert_eq!((there.header("authorization"), there.header("x-plain")), (None, Some("p")));
        let error = fetch(&options, Method::POST, &far.url("/"), 99).await.unwrap_err();
        assert_eq!(error.fault, NetFault::Redirect);
        assert!(error.to_string().contains(&other.url("/there")), "{error}");
        assert!(other.got().is_empty());
    }
    let post = redirecting(303, "/there".to_owned()).await;
    let error = fetch(&ClientOptions::default(), Method::POST, &post.url("/"), 99).await.unwrap_err();
    assert_eq!(error.fault, NetFault::Redirect);
}

/// A chain of redirects leaves the origin and comes back to it. The secrets are sent to the first address only.
#[tokio::test]
async fn secrets_stay_away_for_the_rest_of_a_chain_of_redirects() {
    let home = Arc::new(OnceLock::<String>::new());
    let known = home.clone();
    let other = HttpServer::new(move |got: &Got| match got.path.as_str() {
        "/file" => Reply::new(303, &[("location", "/again")], ""),
        "/again" => Reply::new(303, &[("location", known.get().unwrap())], ""),
        _ => Reply::new(404, &[], ""),
    })
    .await;
    for (status, method) in [(302, Method::GET), (303, Method::GET), (303, Method::POST)] {
        let near = redirecting(status, other.url("/file")).await;
        let is_first = home.set(near.url("/there")).is_ok();
        let client = HttpClient::new(&ClientOptions::default()).unwrap().finding_results();
        let url = near.url("/").parse().unwrap();
        client.send(method, &url, &headers(), None).await.unwrap();
        let authorized = |got: Vec<Got>| -> Vec<(String, bool)> {
            got.iter().map(|got| (got.path.clone(), got.header("authorization").is_some())).collect()
        };
        let elsewhere = [("/file".to_owned(), false), ("/again".to_owned(), false)];
        assert_eq!(authorized(other.got()), elsewhere, "{status}");
        if is_first {
            assert_eq!(authorized(near.got()), [("/".to_owned(), true), ("/there".to_owned(), false)]);
        }
    }
}

#[tokio::test]
async fn a_put_or_delete_is_made_again_only_where_the_status_asks_for_it() {
    let options = ClientOptions::default();
    for method in [Method::PUT, Method::DELETE] {
        for status in [301, 302] {
            let near = redirecting(status, "/there".to_owned()).await;
            let error = fetch(&options, method.clone(), &near.url("/"), 99).await.unwrap_err();
            assert_eq!((error.fault, near.got().len()), (NetFault::Redirect, 1), "{error}");
            let said = format!("a {method} with {status} to {}", near.url("/there"));
            assert!(error.to_string().contains(&said), "{error}");
        }
        for status in [307, 308] {
            let near = redirecting(status, "/there".to_owned()).await;
            let answer = fetch(&options, method.clone(), &near.url("/"), 99).await.unwrap();
            assert_eq!(answer, format!("200 {method} here"));
        }
    }
}

#[tokio::test]
async fn certificates_of_both_sides() {
    let authority = Authority::new(true);
    let to = redirecting(307, String::new()).await.url("/there");
    let server = HttpServer::tls(&authority, move |got| match got.path.as_str() {
        "/down" => Reply::new(302, &[("location", &to)], ""),
        _ => Reply::new(200, &[], "in"),
    })
    .await;
    let with = |client: bool| {
        let client_certificate = client.then(|| ClientCertificate {
            certificate: authority.file("client.pem"),
            key: authority.file("client.key"),
        });
        let tls = TlsOptions { ca_file: Some(authority.file("ca.pem")), client_certificate };
        ClientOptions { tls, ..Default::default() }
    };
    let fetch =
        async |options: &ClientOptions, path| fetch(options, Method::GET, &server.url(path), 99).await;
    assert_eq!(fetch(&with(true), "/").await.unwrap(), "200 in");
    let error = fetch(&with(true), "/down").await.unwrap_err();
    assert!(error.to_string().contains("which is not https"), "{error}");
    let error = fetch(&with(false), "/").await.unwrap_err();
    assert_eq!(error.fault, NetFault::Tls, "{error}");
    let mut wrong = with(false);
    wrong.tls.ca_file = Some(authority.file("client.key"));
    let error = HttpClient::new(&wrong).err().unwrap();
    assert!(error.fault == NetFault::Setup && error.to_string().contains("client.key"), "{error}");
}

#[tokio::test]
async fn connections_are_used_again() {
    let server = faulty(|| Reply::new(200, &[], "x")).await;
    let client = HttpClient::new(&ClientOptions::default()).unwrap();
    for _ in 0..5 {
        let url = server.url("/").parse().unwrap();
        let response = client.send(Method::POST, &url, &headers(), None).await;
        response.unwrap().body.read(9).await.unwrap();
    }
    assert!(server.got().iter().all(|got| got.connection == 0));
}

#[tokio::test]
async fn a_proxy_is_asked_for_what_it_shall_fetch() {
    let proxy = faulty(|| Reply::new(200, &[], "through")).await;
    let options = ClientOptions { proxy: Some(proxy.url("/").parse().unwrap()), ..Default::default() };
    assert_eq!(fetch(&options, Method::GET, "http://far.invalid/a", 99).await.unwrap(), "200 through");
    assert_eq!(proxy.got()[0].path, "http://far.invalid/a");
}

/// The HTTP library reads them in a loop that does not yield by itself: the bytes read between two polls of another
/// task on the same thread are bounded.
#[tokio::test]
async fn interim_answers_without_end_take_turns_with_all_else() {
    const FLOOD: u64 = 48 << 20;
    // One poll, and the buffers of both ends.
    const MOST: u64 = 24 << 20;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let sent = Arc::new(AtomicU64::new(0));
    let counted = sent.clone();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // The server must not speak before a request.
        assert!(stream.read(&mut [0; 1_024]).unwrap() > 0);
        let piece = b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n".repeat(1_000);
        while counted.load(Ordering::Relaxed) < FLOOD && stream.write_all(&piece).is_ok() {
            counted.fetch_add(piece.len() as u64, Ordering::Relaxed);
        }
    });
    let mut answer = pin!(get(&url));
    let (mut seen, mut longest) = (0, 0);
    let ended = loop {
        let now = sent.load(Ordering::Relaxed);
        (seen, longest) = (now, longest.max(now - seen));
        tokio::select! {
            ended = &mut answer => break ended,
            () = tokio::task::yield_now() => {}
        }
    };
    assert_eq!(ended.unwrap_err().fault, NetFault::Reset);
    assert!(seen >= FLOOD && longest < MOST, "{longest} bytes of {seen} in one turn");
}

#[tokio::test]
async fn what_a_server_refuses_unseen_is_sent_again() {
    const REFUSED: usize = 2;
    let authority = Authority::new(false);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}/", listener.local_addr().unwrap().port());
    let tls = authority.acceptor(&["h2"]);
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut connection = h2::server::handshake(tls.accept(stream).await.unwrap()).await.unwrap();
        let mut seen = 0;
        while let Some(Ok((_, mut respond))) = connection.accept().await {
            seen += 1;
            match seen <= REFUSED {
                true => respond.send_reset(h2::Reason::REFUSED_STREAM),
                false => {
                    let mut body = respond.send_response(hyper::Response::new(()), false).unwrap();
                    body.send_data("in".into(), true).unwrap();
                }
            }
        }
    });
    let tls = TlsOptions { ca_file: Some(authority.file("ca.pem")), client_certificate: None };
    let options = ClientOptions { tls, ..Default::default() };
    assert_eq!(fetch(&options, Method::GET, &url, 99).await.unwrap(), "200 in");
}

/// A redirect from a loopback address may lead to loopback addresses only. A unit test of the rule has the whole table.
#[tokio::test]
async fn redirects_lead_to_no_address_that_trusts_this_machine_more() {
    let there = redirecting(302, String::new()).await;
    let mapped = format!("http://[::ffff:127.0.0.1]:{}/there", there.port);
    let near = redirecting(302, there.url("/there")).await;
    assert_eq!(get(&near.url("/")).await.unwrap(), "200 GET here");
    for forbidden in [
        "http://169.254.169.254/latest/meta-data/iam",
        "http://0.0.0.0:1/",
        "http://[fe80::1]/",
        "http://[::ffff:169.254.169.254]/",
        "http://0xa9.254.43518/",
        "http://224.0.0.1/",
    ] {
        let leading = redirecting(302, forbidden.to_owned()).await;
        let error = get(&leading.url("/")).await.unwrap_err();
        assert_eq!(error.fault, NetFault::Redirect, "{forbidden}: {error}");
        assert!(error.to_string().contains("which is not followed"), "{forbidden}: {error}");
    }
    // A name that a proxy resolves counts as public: its redirects must not lead back to this machine.
    for (to, wanted) in [
        (there.url("/there"), None),
        (mapped, None),
        (format!("http://localhost:{}/there", there.port), None),
        ("http://10.0.0.1/".to_owned(), None),
        ("http://other.invalid/there".to_owned(), Some("200 through")),
    ] {
        let proxy = HttpServer::new(move |got: &Got| match got.path.as_str() {
            "http://far.invalid/a" => Reply::new(302, &[("location", &to)], ""),
            _ => Reply::new(200, &[], "through"),
        })
        .await;
        let options = ClientOptions { proxy: Some(proxy.url("/").parse().unwrap()), ..Default::default() };
        let fetched = fetch(&options, Method::GET, "http://far.invalid/a", 99).await;
        match wanted {
            Some(text) => assert_eq!(fetched.unwrap(), text),
            None => assert_eq!(fetched.unwrap_err().fault, NetFault::Redirect),
        }
    }
    assert_eq!(there.got().len(), 1, "only the one that came from this machine");
}
