//! Benchmark of JSON decoding and encoding, compared with `serde_json::Value`.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ptc_benches::large_budget;
use ptc_vm::Isolate;
use ptc_vm::json::{Keys, decode, encode};
use std::fmt::Write as _;
use std::hint::black_box;

/// About half a megabyte of rows, as an API lists them.
fn document() -> String {
    let mut text = String::from("[");
    for row in 0..2_500 {
        let _ = write!(
            text,
            "{}{{\"id\":{row},\"title\":\"Issue number {row} \\u00e9\",\"state\":\"{}\",\"score\":{}.25,\"labels\":[\"bug\",\"p1\"],\
             \"author\":{{\"login\":\"user{}\",\"admin\":{}}}}}",
            if row > 0 { "," } else { "" },
            if row % 2 == 0 { "open" } else { "closed" },
            row % 100,
            row % 50,
            row % 7 == 0
        );
    }
    text.push(']');
    text
}

fn json(criterion: &mut Criterion) {
    let text = document();
    let mut group = criterion.benchmark_group("json");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("decode", |bencher| {
        bencher.iter(|| {
            let mut isolate = Isolate::new(large_budget());
            isolate.with(|cx| black_box(decode(cx, text.as_bytes()).is_ok()))
        });
    });
    group.bench_function("decode, serde_json::Value", |bencher| {
        bencher.iter(|| black_box(serde_json::from_str::<serde_json::Value>(&text).is_ok()));
    });
    group.bench_function("encode", |bencher| {
        let mut isolate = Isolate::new(large_budget());
        isolate.with(|cx| {
            let Ok(value) = decode(cx, text.as_bytes()) else { return };
            bencher.iter(|| black_box(encode(cx, &value, Keys::Names, usize::MAX).is_ok()));
        });
    });
    group.finish();
}

criterion_group!(benches, json);
criterion_main!(benches);
