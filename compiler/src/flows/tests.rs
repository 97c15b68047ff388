use super::*;

#[test]
fn a_plan_is_interrupted() {
    let looks = std::cell::Cell::new(0_usize);
    let goes_on = || {
        looks.set(looks.get() + 1);
        looks.get() < 3
    };
    let arena = Bump::new();
    let nodes = Nodes::new(&arena, &goes_on, &" ".repeat(100_000), 1 << 30);
    let mut units = 0;
    while nodes.pay(1) {
        units += 1;
    }
    assert!(nodes.is_spent() && looks.get() == 3 && units < 10_000, "{units}");
    // Bytes are bounded too: by what the compilation may still hold.
    let nodes = Nodes::new(&arena, &|| true, &" ".repeat(100_000), 1 << 16);
    while !nodes.is_spent() {
        let _ = nodes.node(node::NEVER);
    }
    assert!(arena.allocated_bytes() < 1 << 17);
}
