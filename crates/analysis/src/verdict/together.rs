//! One verdict on several pairs of hosts that were watched at the same time.

use landspeed_record::Verdict;

use super::is_limit;

/// Joins the verdicts of several pairs. The result has the sum of their goodputs and the findings of all of them. A
/// finding about a host that is in several pairs is listed once, at its highest weight.
pub fn together(verdicts: impl IntoIterator<Item = Verdict>) -> Verdict {
    let mut verdicts = verdicts.into_iter();
    let Some(mut all) = verdicts.next() else { return Verdict::default() };
    for one in verdicts {
        all.goodput_bps = all.goodput_bps + one.goodput_bps;
        // Each pair has a path of its own.
        all.path_rate = None;
        all.findings.extend(one.findings);
        // One pair that can be judged is enough for a verdict.
        all.cannot_tell = all.cannot_tell.filter(|_| one.cannot_tell.is_some());
        let new: Vec<String> = one.unjudged.into_iter().filter(|line| !all.unjudged.contains(line)).collect();
        all.unjudged.extend(new);
    }
    all.findings.sort_by(|a, b| {
        is_limit(a.cause).cmp(&is_limit(b.cause)).then_with(|| b.weight.total_cmp(&a.weight))
    });
    let mut listed = Vec::new();
    all.findings.retain(|finding| {
        let key = (finding.cause, finding.at.clone());
        let is_new = !listed.contains(&key);
        listed.push(key);
        is_new
    });
    all
}

#[cfg(test)]
mod tests {
    use landspeed_record::units::BitRate;
    use landspeed_record::{Cause, Finding, NoVerdictReason};

    use super::*;

    fn verdict(findings: &[(Cause, &str, f64)]) -> Verdict {
        let finding = |(cause, at, weight): &(Cause, &str, f64)| Finding {
            at: (*at).to_owned(),
            ..super::super::judge::found(*cause, *weight, 0.9, "")
        };
        Verdict {
            goodput_bps: BitRate(1e9),
            findings: findings.iter().map(finding).collect(),
            cannot_tell: findings.is_empty().then_some(NoVerdictReason::NoFlow),
            ..Verdict::default()
        }
    }

    #[test]
    fn a_fault_of_any_pair_comes_before_the_limits_of_all() {
        let one = verdict(&[(Cause::CpuLimit, "host h1", 0.9)]);
        let two = verdict(&[(Cause::ReceiveBuffer, "host hub", 0.3), (Cause::CpuLimit, "host h2", 0.2)]);
        let three = verdict(&[(Cause::ReceiveBuffer, "host hub", 0.5)]);
        let all = together([one, two, three, verdict(&[])]);
        let listed: Vec<_> = all.findings.iter().map(|f| (f.cause, f.at.as_str(), f.weight)).collect();
        assert_eq!(
            listed,
            [
                (Cause::ReceiveBuffer, "host hub", 0.5),
                (Cause::CpuLimit, "host h1", 0.9),
                (Cause::CpuLimit, "host h2", 0.2)
            ]
        );
        assert_eq!((all.goodput_bps, all.cannot_tell), (BitRate(4e9), None));
        assert_eq!(together([verdict(&[])]).cannot_tell, Some(NoVerdictReason::NoFlow));
    }
}
