//! Tests of the gate: who is admitted, displaced and withdrawn.

use super::*;

fn one_job() -> Arc<Gate> {
    Gate::new(GateLimits {
        jobs: 1,
        memory_bytes: 0,
        queued: 100,
        queued_bytes: 100,
        parking: ParkingLimits::default(),
    })
}

fn request(slot: u64) -> PermitRequest {
    PermitRequest { slot: Slot(slot), queued_bytes: 0, memory_bytes: 0 }
}

/// Slots that were admitted and slots that were displaced since the last call. It drops their permits at
/// once.
fn drain(mailbox: &Mailbox) -> (Vec<u64>, Vec<u64>) {
    let (mut admitted, mut displaced) = (Vec::new(), Vec::new());
    for (Slot(slot), event) in mailbox.take() {
        match event {
            Event::Admitted(_) => admitted.push(slot),
            _ => displaced.push(slot),
        }
    }
    (admitted, displaced)
}

#[test]
fn who_asks_seldom_is_next_and_is_not_shut_out() {
    let gate = one_job();
    let tenant = gate.tenant(TenantLimits { jobs: 1, queued: 3 });
    let (loud, quiet) = (Arc::<Mailbox>::default(), Arc::<Mailbox>::default());
    let mut flood = tenant.join(Arc::default(), loud.clone());
    (0..4).for_each(|slot| flood.request_permit(request(slot)));
    let mut other = tenant.join(Arc::default(), quiet.clone());
    assert_eq!(other.full(), Some(QueueFull::Tenant));
    assert_eq!(flood.displace_last(request(4)), Err(QueueFull::Tenant), "it has had its rounds");
    assert_eq!(other.displace_last(request(5)), Ok(()));
    assert_eq!(drain(&loud), (vec![0], vec![3]), "the last one makes room");
    assert_eq!((drain(&quiet), drain(&loud)), ((vec![5], vec![]), (vec![1], vec![])));
    assert_eq!(drain(&loud), (vec![2], vec![]));
    assert_eq!(gate.queued(), 0);
}

#[test]
fn a_request_starts_at_once_only_if_it_passes_no_other() {
    let gate = one_job();
    let tenant = gate.tenant(TenantLimits::ALL);
    let mailbox = Arc::<Mailbox>::default();
    let mut one = tenant.join(Arc::default(), mailbox.clone());
    let mut other = gate.tenant(TenantLimits::ALL).join(Arc::default(), Arc::default());
    let running = one.try_permit(0).expect("nothing waits");
    assert!(one.try_permit(0).is_none() && other.try_permit(0).is_none(), "one job at once");
    one.request_permit(request(0));
    drop(running);
    assert!(other.try_permit(0).is_none(), "the permit is that of the request that waited");
    assert_eq!(drain(&mailbox), (vec![0], vec![]));
    assert!(one.try_permit(0).is_none(), "its request has been admitted, but has not started");
    one.forget(Slot(0));
    one.hold(true);
    assert!(one.try_permit(0).is_none(), "it is held back");
    assert!(other.try_permit(0).is_some());
    one.hold(false);
    assert!(one.try_permit(0).is_some());
}

#[test]
fn what_is_withdrawn_is_not_admitted() {
    let gate = one_job();
    let tenant = gate.tenant(TenantLimits::ALL);
    let mailbox = Arc::<Mailbox>::default();
    let mut one = tenant.join(Arc::default(), mailbox.clone());
    (0..3).for_each(|slot| one.request_permit(request(slot)));
    one.withdraw(Slot(1));
    assert_eq!(drain(&mailbox), (vec![0], vec![]));
    assert_eq!(drain(&mailbox), (vec![2], vec![]));
    one.request_permit(request(3));
    drop(one);
    assert_eq!(gate.queued(), 0);
}
