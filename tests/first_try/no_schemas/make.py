#!/usr/bin/env python3
"""Forty tasks on four servers without output schemas, and their answers computed without ptc.

Writes data.json (for table-server) and tasks.json. The same each time."""
import json, os, random
from collections import Counter, defaultdict
from datetime import date, timedelta

HERE = os.path.dirname(os.path.abspath(__file__))
R = random.Random(40)
DAY = date(2026, 3, 1)
day = lambda offset: str(DAY + timedelta(days=offset))
cents = lambda number: round(number + 1e-9, 2)

NAMES = "Ada Ben Chiara Dmitri Elif Farid Greta Hiro Jonas Kira Mona Nils Olga Pavel Rosa Sven".split()
SHOPS = ["Green Grocer", "City Rail", "Book Nook", "Power Co", "Café Luna", "Gym 24"]
CITIES = ["Lisbon", "Oslo", "Porto", "Turin", "Vienna"]

accounts = [{"iban": f"PT50{number:06}", "owner": {"name": name, "since": day(-R.randrange(100, 3000))}, "balance": round(R.uniform(-900, 4000), 2),
             "limits": {"daily": R.choice([500, 1000, 2500]), "currency": "EUR"}, "frozen": R.random() < 0.15} for number, name in enumerate(NAMES, 1)]
transfers = []
for number in range(1, 121):
    account = R.choice(accounts[:13])
    incoming = R.random() < 0.25
    transfers.append({"ref": f"TR-{number:04}", "account": account["iban"], "direction": "in" if incoming else "out", "amount": round(R.uniform(3, 900), 2),
                      "counterparty": R.choice(NAMES if incoming else SHOPS), "booked": day(R.randrange(-60, 1)), "memo": R.choice([None, None, "rent", "gift", "invoice"])})
standing = [{"account": R.choice(accounts)["iban"], "payee": R.choice(SHOPS), "amount": R.choice([9.99, 25, 49.5, 120]), "every": R.choice(["month", "quarter", "year"]), "active": R.random() < 0.7} for _ in range(24)]

mails = []
for number in range(1, 91):
    to = R.sample(NAMES, R.randint(1, 3))
    mails.append({"id": number, "from": R.choice(NAMES[:12]), "to": to, "subject": R.choice(["Lunch?", "Report", "Re: Report", "Invoice", "Holiday", "Offsite"]), "sent_on": day(R.randrange(-30, 1)),
                  "read": R.random() < 0.6, "attachments": [{"file": f"{R.choice(['plan', 'bill', 'photo'])}.{R.choice(['pdf', 'png'])}", "kb": R.randrange(5, 4000)} for _ in range(R.choice([0, 0, 0, 1, 2]))]})
contacts = [{"name": name, "phones": {kind: f"+351 9{R.randrange(10_000_000, 99_999_999)}" for kind in R.sample(["home", "work", "mobile"], R.randrange(3))}, "city": R.choice(CITIES + [None])} for name in NAMES]

hotels = [{"code": f"H{number:02}", "name": f"Hotel {R.choice(['Sol', 'Mar', 'Rio', 'Lua'])} {number}", "place": {"city": R.choice(CITIES), "center_km": round(R.uniform(0.1, 9), 1)}, "stars": R.randint(2, 5),
           "night": R.randrange(45, 320), "offers": R.sample(["breakfast", "pool", "wifi", "gym", "parking"], R.randrange(5))} for number in range(1, 31)]
reviews = [{"hotel": R.choice(hotels)["code"], "by": R.choice(NAMES), "score": R.randint(1, 10), "text": R.choice(["Fine.", "Loud at night.", "Lovely!", None])} for _ in range(110)]
trips = [{"traveller": R.choice(NAMES), "hotel": R.choice(hotels)["code"], "arrival": day(start := R.randrange(-20, 60)), "departure": day(start + R.randint(1, 9)), "status": R.choice(["booked", "booked", "cancelled", "done"])} for _ in range(60)]

sensors = [{"sensor": f"s{number}", "room": R.choice(["lab", "hall", "roof", "cellar"]), "unit": R.choice(["C", "C", "F"]), "battery": R.choice([None, R.randrange(1, 100)])} for number in range(1, 19)]
readings = [{"sensor": R.choice(sensors)["sensor"], "at": day(R.randrange(-14, 1)) + f"T{R.randrange(24):02}:00:00Z", "value": round(R.uniform(-5, 35), 1) if R.random() < 0.95 else None} for _ in range(300)]
stock = "part,bin,qty,min\n" + "\n".join(f"P{number:03},{R.choice('ABCD')}{R.randint(1, 9)},{R.randrange(0, 60)},{R.choice([5, 10, 20])}" for number in range(1, 41)) + "\n"
events = "\n".join(json.dumps({"t": number, "kind": R.choice(["open", "close", "alarm"]), "door": R.choice(["north", "south", "gate"]), "by": R.choice(NAMES + [None])}) for number in range(1, 81)) + "\n"

tool = lambda description, args=None, required=(), **more: {"description": description, "args": args or {}, "required": list(required), **more}
SERVERS = {
    "bank": {"tables": {"accounts": accounts, "transfers": transfers, "standing": standing}, "as": "text", "tools": {
        "accounts": tool("All accounts.", rows="accounts"), "account": tool("One account.", {"iban": "string"}, ["iban"], one="accounts"),
        "transfers": tool("Transfers, of one account if given.", {"account": "string", "direction": "string"}, rows="transfers"), "standing_orders": tool("Standing orders.", {"account": "string"}, rows="standing")}},
    "inbox": {"tables": {"mails": mails, "contacts": contacts}, "as": "text", "tools": {
        "mails": tool("Mails, by sender if given.", {"from": "string"}, rows="mails"), "contact": tool("One contact.", {"name": "string"}, ["name"], one="contacts"), "contacts": tool("All contacts.", rows="contacts")}},
    "travel": {"tables": {"hotels": hotels, "reviews": reviews, "trips": trips}, "as": "text", "tools": {
        "hotels": tool("All hotels.", {"stars": "integer"}, rows="hotels"), "reviews": tool("Reviews of one hotel.", {"hotel": "string"}, ["hotel"], rows="reviews"), "trips": tool("Trips.", {"traveller": "string", "status": "string"}, rows="trips")}},
    "plant": {"tables": {"sensors": sensors, "readings": readings, "files": {"stock.csv": stock, "events.jsonl": events}}, "as": "text", "tools": {
        "sensors": tool("All sensors.", rows="sensors"), "readings": tool("Readings of one sensor.", {"sensor": "string"}, ["sensor"], rows="readings"), "file": tool("Text of a file: stock.csv or events.jsonl.", {"path": "string"}, ["path"], texts="files")}},
}

TASKS = []


def task(text, answer):
    TASKS.append({"task": text, "answer": answer})


def sums(pairs):
    total = defaultdict(float)
    for key, value in pairs:
        total[key] += value
    return {key: cents(value) for key, value in total.items()}


owner = {row["iban"]: row["owner"]["name"] for row in accounts}
hotel = {row["code"]: row for row in hotels}
sensor = {row["sensor"]: row for row in sensors}
parts = [dict(zip(["part", "bin", "qty", "min"], line.split(","))) for line in stock.splitlines()[1:]]
doors = [json.loads(line) for line in events.splitlines()]
out = [row for row in transfers if row["direction"] == "out"]
nights = lambda trip: (date.fromisoformat(trip["departure"]) - date.fromisoformat(trip["arrival"])).days
celsius = lambda row: row["value"] if sensor[row["sensor"]]["unit"] == "C" else (row["value"] - 32) * 5 / 9

# bank
task("Sum of all outgoing transfers, two decimals.", cents(sum(row["amount"] for row in out)))
task("Outgoing sums by counterparty, two decimals, as a map.", sums((row["counterparty"], row["amount"]) for row in out))
task("Names of the owners of frozen accounts, sorted.", sorted(row["owner"]["name"] for row in accounts if row["frozen"]))
task("IBANs of accounts with a negative balance, sorted.", sorted(row["iban"] for row in accounts if row["balance"] < 0))
task("Number of transfers by month of booking (\"2026-02\"), as a map.", Counter(row["booked"][:7] for row in transfers))
task("Name of the owner with the largest sum of outgoing transfers.", max(sums((owner[row["account"]], row["amount"]) for row in out).items(), key=lambda pair: pair[1])[0])
task("References of transfers whose memo is rent, ascending.", sorted(row["ref"] for row in transfers if row["memo"] == "rent"))
task("What all active standing orders cost a year, two decimals.", cents(sum(row["amount"] * {"month": 12, "quarter": 4, "year": 1}[row["every"]] for row in standing if row["active"])))
task("References of outgoing transfers above the daily limit of their account, ascending.", sorted(row["ref"] for row in out if row["amount"] > next(a["limits"]["daily"] for a in accounts if a["iban"] == row["account"])))
task("Names of the owners without any transfer, sorted.", sorted(name for iban, name in owner.items() if all(row["account"] != iban for row in transfers)))
# inbox
task("Number of unread mails by sender, as a map without zeros.", Counter(row["from"] for row in mails if not row["read"]))
task("Total size in KB of all attachments that are pdf files.", sum(a["kb"] for row in mails for a in row["attachments"] if a["file"].endswith(".pdf")))
task("Ids of mails with more than one attachment, ascending.", [row["id"] for row in mails if len(row["attachments"]) > 1])
task("Names that have received a mail, but sent none, sorted.", sorted({name for row in mails for name in row["to"]} - {row["from"] for row in mails}))
task("The three most frequent subjects, most frequent first; ties by name.", [subject for subject, _ in sorted(Counter(row["subject"] for row in mails).items(), key=lambda pair: (-pair[1], pair[0]))[:3]])
task("Names of contacts without any phone, sorted.", sorted(row["name"] for row in contacts if not row["phones"]))
task("Number of contacts by kind of phone, as a map.", Counter(kind for row in contacts for kind in row["phones"]))
task("Cities of the senders of mails with the subject Invoice, without repetitions and without unknown ones, sorted.", sorted({c["city"] for row in mails if row["subject"] == "Invoice" for c in contacts if c["name"] == row["from"] and c["city"]}))
task("Ids of mails that their sender also got, ascending.", [row["id"] for row in mails if row["from"] in row["to"]])
task("The date on which most mails were sent; of several the first.", min(Counter(row["sent_on"] for row in mails).items(), key=lambda pair: (-pair[1], pair[0]))[0])
# travel
task("Names of hotels in Lisbon, cheapest night first; ties by name.", [row["name"] for row in sorted(hotels, key=lambda row: (row["night"], row["name"])) if row["place"]["city"] == "Lisbon"])
task("Mean price of a night by stars, two decimals, as a map with keys like \"3\".", {str(stars): cents(sum(row["night"] for row in hotels if row["stars"] == stars) / sum(row["stars"] == stars for row in hotels)) for stars in sorted({row["stars"] for row in hotels})})
task("Codes of hotels with pool and wifi, sorted.", sorted(row["code"] for row in hotels if {"pool", "wifi"} <= set(row["offers"])))
task("Code of the hotel with the best mean score among those with at least four reviews; of several the first by code.", min((-sum(r["score"] for r in reviews if r["hotel"] == code) / n, code) for code, n in Counter(r["hotel"] for r in reviews).items() if n >= 4)[1])
task("Number of hotels without a review.", sum(row["code"] not in {r["hotel"] for r in reviews} for row in hotels))
task("Nights of all trips that are not cancelled, by traveller, as a map.", dict(sums((row["traveller"], nights(row)) for row in trips if row["status"] != "cancelled")))
task("What all booked trips cost (nights times the price of a night).", sum(nights(row) * hotel[row["hotel"]]["night"] for row in trips if row["status"] == "booked"))
task("Cities by number of booked trips, as a map.", Counter(hotel[row["hotel"]]["place"]["city"] for row in trips if row["status"] == "booked"))
task("Code of the hotel nearest to the center of Vienna, or null.", min(((row["place"]["center_km"], row["code"]) for row in hotels if row["place"]["city"] == "Vienna"), default=(0, None))[1])
task("Travellers with trips (any status) to more than two different cities, sorted.", sorted(name for name in NAMES if len({hotel[row["hotel"]]["place"]["city"] for row in trips if row["traveller"] == name}) > 2))
# plant
task("Ids of sensors without a battery value, in the order of the list.", [row["sensor"] for row in sensors if row["battery"] is None])
task("Number of readings without a value.", sum(row["value"] is None for row in readings))
task("Highest temperature in Celsius by room (Fahrenheit converted), one decimal, as a map.", {room: round(max(celsius(row) for row in readings if row["value"] is not None and sensor[row["sensor"]]["room"] == room) + 1e-9, 1) for room in sorted({row["room"] for row in sensors}) if any(row["value"] is not None and sensor[row["sensor"]]["room"] == room for row in readings)})
task("Number of readings by sensor of the room lab, as a map without zeros.", Counter(row["sensor"] for row in readings if sensor[row["sensor"]]["room"] == "lab"))
task("The day of the last reading of sensor s1, or null.", max((row["at"][:10] for row in readings if row["sensor"] == "s1"), default=None))
task("Parts of stock.csv below their minimum, sorted.", sorted(row["part"] for row in parts if int(row["qty"]) < int(row["min"])))
task("Total quantity in stock.csv by the letter of the bin, as a map.", {letter: sum(int(row["qty"]) for row in parts if row["bin"][0] == letter) for letter in sorted({row["bin"][0] for row in parts})})
task("Number of alarms by door in events.jsonl, as a map.", Counter(row["door"] for row in doors if row["kind"] == "alarm"))
task("Names that opened the gate in events.jsonl, without repetitions, sorted.", sorted({row["by"] for row in doors if row["kind"] == "open" and row["door"] == "gate" and row["by"]}))
task("t of the first alarm in events.jsonl by an unknown person, or null.", next((row["t"] for row in doors if row["kind"] == "alarm" and row["by"] is None), None))

assert len(TASKS) == 40
for name, value in (("data.json", SERVERS), ("tasks.json", TASKS)):
    with open(os.path.join(HERE, name), "w") as file:
        json.dump(value, file, ensure_ascii=False, separators=(",", ":")) if name == "data.json" else json.dump(value, file, ensure_ascii=False, indent=1)
        file.write("\n")
