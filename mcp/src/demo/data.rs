//! Makes the sample data of the demo from a fixed seed: customers and orders of a shop, tickets of a help desk. They
//! are the same on every machine and in every process.

use serde_json::{Value, json};

/// Number of customers.
pub const CUSTOMERS: usize = 24;
const ORDERS_PER_CUSTOMER: usize = 18;
const TICKETS: usize = 140;

const FIRST_NAMES: [&str; 12] =
    ["Ada", "Bo", "Chiara", "Dmitri", "Esra", "Femi", "Greta", "Hiro", "Ines", "Jonas", "Kavya", "Luis"];
const LAST_NAMES: [&str; 8] =
    ["Lindqvist", "Okafor", "Moretti", "Tanaka", "Yilmaz", "Novak", "Fernandes", "Schmidt"];
const CITIES: [&str; 6] = ["Lisbon", "Gothenburg", "Nagoya", "Izmir", "Lagos", "Brno"];
const PRODUCTS: [(&str, u64); 8] = [
    ("Field notebook, dotted, 192 pages", 14),
    ("Espresso grinder, 54 mm steel burrs", 189),
    ("Rain jacket, 3 layers", 240),
    ("Desk lamp with dimmer", 79),
    ("Trail running shoes", 135),
    ("Mechanical keyboard, 75 percent", 168),
    ("Cast iron pan, 26 cm", 62),
    ("Noise-cancelling headphones", 299),
];
const SUBJECTS: [&str; 8] = [
    "Parcel has not moved for a week",
    "Wrong size was delivered",
    "Refund is missing",
    "Invoice shows the old address",
    "Discount code was refused",
    "Item arrived broken",
    "Cannot log in since the update",
    "Please change the delivery date",
];
const PRIORITIES: [&str; 4] = ["low", "normal", "high", "urgent"];
const BODY: &str = "Hello, I am writing about the order mentioned above. I have already looked through the help \
    pages and tried the steps described there, but nothing has changed since. Could somebody please have a look \
    and tell me what happens next? I can send photographs and the receipt if that helps. Thank you in advance.";

/// A small random generator with a fixed sequence; only reproducibility matters.
struct Sequence(u64);

impl Sequence {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % below.max(1)
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.next(from.len())]
    }
}

fn customer_id(index: usize) -> String {
    format!("c-{:02}", index + 1)
}

/// The index of a customer id.
pub fn customer_index(id: &str) -> Option<usize> {
    let number: usize = id.strip_prefix("c-")?.parse().ok()?;
    (1..=CUSTOMERS).contains(&number).then(|| number - 1)
}

/// One customer.
pub fn customer(index: usize) -> Value {
    let mut sequence = Sequence(index as u64 + 101);
    let first = FIRST_NAMES[index % FIRST_NAMES.len()];
    let last = LAST_NAMES[(index * 3 + index / 12) % LAST_NAMES.len()];
    json!({
        "id": customer_id(index),
        "name": format!("{first} {last}"),
        "email": format!("{}.{}@example.com", first.to_lowercase(), last.to_lowercase()),
        "city": sequence.pick(&CITIES),
        "customer_since": format!("20{:02}-0{}-1{}", 15 + sequence.next(10), 1 + sequence.next(9), sequence.next(10)),
        "newsletter": sequence.next(2) == 0,
    })
}

/// The orders of one customer.
pub fn orders(index: usize) -> Vec<Value> {
    let mut sequence = Sequence(index as u64 + 7_001);
    let count = ORDERS_PER_CUSTOMER - sequence.next(6);
    (0..count).map(|number| order(index, number, &mut sequence)).collect()
}

fn order(index: usize, number: usize, sequence: &mut Sequence) -> Value {
    let mut total = 0;
    let lines: Vec<Value> = (0..1 + sequence.next(4))
        .map(|line| {
            let (name, price) = sequence.pick(&PRODUCTS);
            let quantity = 1 + sequence.next(3) as u64;
            total += price * quantity;
            json!({
                "line": line + 1, "product": name, "unit_price": price, "quantity": quantity,
                "sku": format!("SKU-{:06}", sequence.next(1_000_000)), "tax_rate": 0.21, "warehouse": sequence.pick(&CITIES),
            })
        })
        .collect();
    let status = sequence.pick(&["delivered", "delivered", "delivered", "shipped", "delayed", "returned"]);
    json!({
        "id": format!("o-{:02}{:03}", index + 1, number + 1),
        "customer_id": customer_id(index),
        "status": status,
        "total": total,
        "currency": "EUR",
        "lines": lines,
        "shipping": {
            "carrier": sequence.pick(&["Northway", "Postbud", "Relay"]),
            "tracking": format!("TR{:010}", sequence.next(1_000_000_000)),
            "street": format!("Long Street {}", 1 + sequence.next(200)), "city": sequence.pick(&CITIES),
            "instructions": "Leave with a neighbour if nobody answers the door.",
        },
    })
}

/// Every ticket of the help desk.
pub fn tickets() -> Vec<Value> {
    let mut sequence = Sequence(99);
    (0..TICKETS)
        .map(|number| {
            let customer = sequence.next(CUSTOMERS);
            json!({
                "id": format!("t-{:04}", number + 1),
                "customer_id": customer_id(customer),
                "status": sequence.pick(&["open", "open", "waiting", "closed"]),
                "priority": sequence.pick(&PRIORITIES),
                "subject": sequence.pick(&SUBJECTS),
                "channel": sequence.pick(&["mail", "chat", "phone"]),
                "messages": [
                    { "from": "customer", "text": BODY },
                    { "from": "agent", "text": "Thank you for the details, we are looking into it." },
                ],
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_is_the_same_every_time_and_large_enough_to_matter() {
        assert_eq!(tickets(), tickets());
        let bytes: usize = (0..CUSTOMERS).flat_map(orders).map(|order| order.to_string().len()).sum();
        assert!(bytes > 150_000, "{bytes}");
        assert!(tickets().iter().map(|ticket| ticket.to_string().len()).sum::<usize>() > 50_000);
    }

    #[test]
    fn the_demo_program_stays_within_the_default_call_budget() {
        const { assert!(2 * CUSTOMERS < 50) };
        let mut names: Vec<String> =
            (0..CUSTOMERS).map(|index| customer(index)["name"].to_string()).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), CUSTOMERS);
    }
}
