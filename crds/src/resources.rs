//! CPU and memory as requests and limits.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::{Quantity, cel};

/// How much CPU and memory.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceList {
    /// CPU in cores, for example `500m` or `2`; not finer than `1m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = cel::cpu())]
    pub cpu: Option<Quantity>,
    /// Memory in bytes, for example `256Mi` or `2Gi`; whole bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = cel::memory())]
    pub memory: Option<Quantity>,
}

/// What is asked for (requests) and what is never exceeded (limits).
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceRequirements {
    /// What the execution is sure to get; it waits until a node has that much free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<ResourceList>,
    /// What the execution may use at most. More memory than this ends it with `OutOfMemory`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<ResourceList>,
}

/// One of the four figures of a [`ResourceRequirements`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// `requests.cpu`
    RequestsCpu,
    /// `requests.memory`
    RequestsMemory,
    /// `limits.cpu`
    LimitsCpu,
    /// `limits.memory`
    LimitsMemory,
}

impl Figure {
    /// All four, in the order in which faults are told.
    pub const ALL: [Self; 4] = [Self::RequestsCpu, Self::RequestsMemory, Self::LimitsCpu, Self::LimitsMemory];

    /// The field path below `resources`.
    #[must_use]
    pub const fn path(self) -> &'static str {
        match self {
            Self::RequestsCpu => "requests.cpu",
            Self::RequestsMemory => "requests.memory",
            Self::LimitsCpu => "limits.cpu",
            Self::LimitsMemory => "limits.memory",
        }
    }

    /// The limit that belongs to a request; None for a limit.
    #[must_use]
    pub const fn limit(self) -> Option<Self> {
        match self {
            Self::RequestsCpu => Some(Self::LimitsCpu),
            Self::RequestsMemory => Some(Self::LimitsMemory),
            Self::LimitsCpu | Self::LimitsMemory => None,
        }
    }

    /// Whether this is a figure of CPU (else of memory).
    #[must_use]
    pub const fn is_cpu(self) -> bool {
        matches!(self, Self::RequestsCpu | Self::LimitsCpu)
    }
}

impl ResourceRequirements {
    /// The figure, if it is there.
    #[must_use]
    pub fn get(&self, figure: Figure) -> Option<&Quantity> {
        let list = match figure {
            Figure::RequestsCpu | Figure::RequestsMemory => self.requests.as_ref()?,
            Figure::LimitsCpu | Figure::LimitsMemory => self.limits.as_ref()?,
        };
        if figure.is_cpu() { list.cpu.as_ref() } else { list.memory.as_ref() }
    }

    /// Sets the figure.
    pub fn set(&mut self, figure: Figure, quantity: Quantity) {
        let list = match figure {
            Figure::RequestsCpu | Figure::RequestsMemory => self.requests.get_or_insert_default(),
            Figure::LimitsCpu | Figure::LimitsMemory => self.limits.get_or_insert_default(),
        };
        *(if figure.is_cpu() { &mut list.cpu } else { &mut list.memory }) = Some(quantity);
    }
}
