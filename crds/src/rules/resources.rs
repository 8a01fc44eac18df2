//! Effective resources (spec C5) and the policy that they come from.

use super::FieldError;
use crate::{
    Quantity, ResourceRequirements,
    job_class::ResourcePolicy,
    quantity::{Amount, QuantityError},
    resources::Figure,
};

/// What the execution gets: what was asked for; else the class's default; a request that is still absent takes the
/// limit, and is written so.
///
/// # Errors
/// Every fault: a figure that is too fine, outside of minimum and maximum, a request over its limit, a figure that is
/// absent although a bound asks for it, a limit of 0 (never unbounded). `class_name` is for the messages.
pub fn effective(
    requested: Option<&ResourceRequirements>,
    policy: Option<&ResourcePolicy>,
    class_name: &str,
) -> Result<ResourceRequirements, Vec<FieldError>> {
    let merged = merge(requested, policy.and_then(|policy| policy.defaults.as_ref()));
    let bounds = Bounds {
        minimum: policy.and_then(|policy| policy.minimum.as_ref()),
        maximum: policy.and_then(|policy| policy.maximum.as_ref()),
        class_name,
    };
    let errors: Vec<FieldError> = Figure::ALL.iter().flat_map(|&figure| bounds.errors(&merged, figure)).collect();
    if errors.is_empty() { Ok(merged) } else { Err(errors) }
}

/// Given, else default, else (for a request) the limit.
fn merge(requested: Option<&ResourceRequirements>, defaults: Option<&ResourceRequirements>) -> ResourceRequirements {
    let chosen = |figure| requested.and_then(|r| r.get(figure)).or_else(|| defaults.and_then(|d| d.get(figure)));
    let mut merged = ResourceRequirements::default();
    for figure in Figure::ALL {
        if let Some(quantity) = chosen(figure).or_else(|| figure.limit().and_then(chosen)) {
            merged.set(figure, quantity.clone());
        }
    }
    merged
}

struct Bounds<'a> {
    minimum: Option<&'a ResourceRequirements>,
    maximum: Option<&'a ResourceRequirements>,
    class_name: &'a str,
}

impl Bounds<'_> {
    fn errors(&self, merged: &ResourceRequirements, figure: Figure) -> Vec<FieldError> {
        let field = format!("spec.resources.{}", figure.path());
        let (minimum, maximum) = (self.minimum.and_then(|r| r.get(figure)), self.maximum.and_then(|r| r.get(figure)));
        let Some(value) = merged.get(figure) else {
            let bound = minimum.map(|m| format!("at least {m}")).or_else(|| maximum.map(|m| format!("at most {m}")));
            return bound
                .map(|bound| FieldError::required(field, format!("must be {bound}, {}", self.of_the_class())))
                .into_iter()
                .collect();
        };
        let amount = match exact(value, figure) {
            Ok(amount) => amount,
            Err(detail) => return vec![FieldError::invalid(field, value.to_string(), detail)],
        };
        let mut errors = vec![];
        let mut refuse = |detail: String| errors.push(FieldError::invalid(field.as_str(), value.to_string(), detail));
        if let Some(minimum) = minimum.filter(|m| m.amount().is_ok_and(|minimum| amount < minimum)) {
            refuse(format!("must be at least {minimum}, the minimum {}", self.of_the_class()));
        }
        if let Some(maximum) = maximum.filter(|m| m.amount().is_ok_and(|maximum| amount > maximum)) {
            refuse(format!("must be at most {maximum}, the maximum {}", self.of_the_class()));
        }
        if let Some(limit) = figure.limit().and_then(|limit| merged.get(limit))
            && limit.amount().is_ok_and(|limit| amount > limit)
        {
            refuse(format!("must be at most {limit}, its limit"));
        }
        errors
    }

    fn of_the_class(&self) -> String {
        format!("of JobClass {:?}", self.class_name)
    }
}

/// The value, if it is one that every backend can honour exactly: whole milli of CPU, whole bytes of memory (spec A7;
/// CEL cannot say this), and no limit that is none (C5).
fn exact(value: &Quantity, figure: Figure) -> Result<Amount, String> {
    let amount = value.amount().map_err(|error: QuantityError| error.to_string())?;
    let (fraction, grain) =
        if figure.is_cpu() { (1000, "must not be finer than 1m") } else { (1, "must be whole bytes") };
    if amount.is_negative() {
        Err("must not be negative".to_owned())
    } else if amount.whole(fraction).is_none() {
        Err(grain.to_owned())
    } else if amount == Amount::ZERO && figure.limit().is_none() {
        // A kubelet sets no quota and no memory limit for one of 0.
        Err("must be more than 0, as a limit of 0 is no limit".to_owned())
    } else {
        Ok(amount)
    }
}

/// Faults of a class's policy (spec B8): minimum over maximum, defaults outside of them or with a request over its
/// limit, figures too fine. What comes of the defaults alone passes the bounds, or the policy is at fault.
#[must_use]
pub fn policy_errors(policy: &ResourcePolicy) -> Vec<FieldError> {
    let named = [("defaults", &policy.defaults), ("minimum", &policy.minimum), ("maximum", &policy.maximum)];
    let mut errors = vec![];
    for (name, part) in named {
        for figure in Figure::ALL {
            if let Some(value) = part.as_ref().and_then(|part| part.get(figure))
                && let Err(detail) = exact(value, figure)
            {
                errors.push(FieldError::invalid(path(name, figure), value.to_string(), detail));
            }
        }
    }
    if !errors.is_empty() {
        return errors;
    }
    let mut over = |(low, low_figure): (&str, Figure), (high, high_figure): (&str, Figure)| {
        let part = |name: &str| named.iter().find(|(part, _)| *part == name).and_then(|(_, part)| part.as_ref());
        let value = |name, figure| part(name).and_then(|part| part.get(figure));
        if let (Some(a), Some(b)) = (value(low, low_figure), value(high, high_figure))
            && let (Ok(amount), Ok(bound)) = (a.amount(), b.amount())
            && amount > bound
        {
            // Where a request and a limit are compared, the words say of which the bound is.
            let of =
                |bound: Figure| if low_figure == high_figure { String::new() } else { format!(" of {}", bound.path()) };
            // The default is the one to mend where a default and a bound disagree.
            let (at, shown, detail) = if high == "defaults" && low != "defaults" {
                (path(high, high_figure), b, format!("must be at least {a}, the {low}{}", of(low_figure)))
            } else if low == high {
                (path(low, low_figure), a, format!("must be at most {b}, its limit"))
            } else {
                (path(low, low_figure), a, format!("must be at most {b}, the {high}{}", of(high_figure)))
            };
            errors.push(FieldError::invalid(at, shown.to_string(), detail));
        }
    };
    for figure in Figure::ALL {
        over(("minimum", figure), ("maximum", figure));
        over(("minimum", figure), ("defaults", figure));
        over(("defaults", figure), ("maximum", figure));
        if let Some(limit) = figure.limit() {
            over(("defaults", figure), ("defaults", limit));
            // Each request is at most its limit, so the least request is at most the highest limit.
            over(("minimum", figure), ("maximum", limit));
            // A request that has no default takes the limit (C5), also that of the defaults.
            if policy.defaults.as_ref().is_none_or(|defaults| defaults.get(figure).is_none()) {
                over(("minimum", figure), ("defaults", limit));
                over(("defaults", limit), ("maximum", figure));
            }
        }
    }
    errors
}

fn path(part: &str, figure: Figure) -> String {
    format!("spec.resources.{part}.{}", figure.path())
}

#[cfg(test)]
mod tests;
