//! Names of the kernel's reasons to drop a packet.

use std::collections::HashMap;

use libbpf_rs::btf::{Btf, types};

/// `enum skb_drop_reason` of the running kernel (include/net/dropreason-core.h); the numbers differ from
/// release to release, so they are read from its own types.
pub(super) struct Reasons(HashMap<u32, String>);

impl Reasons {
    pub(super) fn of(btf: &Btf<'_>) -> Self {
        let Some(reasons) = btf.type_by_name::<types::Enum<'_>>("skb_drop_reason") else {
            return Reasons(HashMap::new());
        };
        let named = reasons.iter().filter_map(|member| {
            let name = member.name?.to_str()?;
            let short = name.strip_prefix("SKB_DROP_REASON_").or_else(|| name.strip_prefix("SKB_"))?;
            Some((u32::try_from(member.value).ok()?, short.to_owned()))
        });
        Reasons(named.collect())
    }

    /// As the kernel spells it, without the prefix: "NO_SOCKET". Reasons of subsystems (the upper half of
    /// the number) have no names in the kernel's types.
    pub(super) fn name(&self, reason: u32) -> String {
        self.0.get(&reason).cloned().unwrap_or_else(|| format!("reason {reason:#x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_reason_keeps_its_number() {
        let known = Reasons(HashMap::from([(3, "NO_SOCKET".to_owned())]));
        assert_eq!((known.name(3).as_str(), known.name(0x20001).as_str()), ("NO_SOCKET", "reason 0x20001"));
    }
}
